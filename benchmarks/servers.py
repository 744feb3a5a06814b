"""Servers in processes of their own, and a second process that drives them."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.load import CONNECTIONS
from topstory.serving.security.api_keys import new_key

HELLO = """
import uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-type", b"text/plain"), (b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})
config = uvicorn.Config(app, port=0, loop="uvloop", http="httptools", lifespan="off",
                        log_level="warning", access_log=False)
socket = config.bind_socket()
print(socket.getsockname()[1], flush=True)
uvicorn.Server(config).run([socket])
"""


@dataclass(frozen=True)
class Target:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    port: int
    key: str

    @property
    def cpu(self) -> float:
        """Seconds of CPU that it has used, its workers included."""
        return sum(self.each_cpu)

    @property
    def each_cpu(self) -> list[float]:
        """Of its main process, then of its workers."""
        main = psutil.Process(self.process.pid)
        return [_cpu(each) for each in (main, *main.children())]


def _cpu(process: psutil.Process) -> float:
    """The scheduler's count where there is one: the other has steps of 10 ms."""
    tasks = Path(f"/proc/{process.pid}/task")
    try:
        return 1e-9 * sum(
            int((each / "schedstat").read_text().split()[0]) for each in tasks.iterdir()
        )
    except OSError:
        used = process.cpu_times()
        return float(used.user + used.system)


def load(
    target: Target, what: str, seconds: float, connections: int = CONNECTIONS
) -> subprocess.Popen[str]:
    """Drive a server: what it prints is one JSON document."""
    command = [sys.executable, "-m", "benchmarks.load", str(target.port), target.key, what]
    return subprocess.Popen(
        [*command, str(seconds), str(connections)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def started(stack: ExitStack, command: list[str], key: str) -> Target:
    """A server that prints its port, or where it serves; it ends with the stack."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stack.callback(_end, process)
    assert process.stdout is not None
    line = process.stdout.readline()
    port = int(line.split()[3].rstrip(",").rsplit(":", 1)[1]) if key else int(line)
    return Target(process, port, key)


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    assert process.stdout is not None
    process.stdout.close()


def service(
    stack: ExitStack,
    folder: Path,
    decisions: str,
    workers: int = 1,
    python: str | None = None,
    more: str = "",
) -> Target:
    """The demo's twenty articles; `python`: of the version to run, if it is not this one.

    `more`: sections of the configuration.
    """
    key, digest = new_key()
    folder.mkdir()
    config = folder / "topstory.toml"
    config.write_text(
        f'port = 0\ndata = "{folder / "data"}"\nlog_level = "warning"\ndemo = true\n'
        f"workers = {workers}\n"
        f'[journal]\ndecisions = "{decisions}"\n[limits]\nburst = 1000000\n'
        f'[[keys]]\nname = "all"\nsha256 = "{digest}"\n{more}'
    )
    command = [python or sys.executable, "-m", "topstory.cli", "serve", "--config", str(config)]
    return started(stack, command, key)
