"""Services as real processes on loopback, on a free port, ended by their own process id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import psutil

from topstory.serving.api.endpoints import ROLES
from topstory.serving.security.api_keys import new_key

MAIN = "from topstory.cli import main; main()"
COMMAND = [sys.executable, "-c", MAIN, "serve"]


class Served:
    """A service in a process of its own; `first` is run there before anything else."""

    def __init__(self, folder: Path, first: str = "", **overrides: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.data = folder, folder / "data"
        self.key, digest = new_key()
        self.reader, reading = new_key()
        base: dict[str, Any] = {
            "port": 0,
            "data": str(self.data),
            "context": 4,
            "log_level": "warning",
            "keys": [
                {"name": "all", "sha256": digest, "roles": list(ROLES)},
                {"name": "reader", "sha256": reading, "roles": ["read"]},
            ],
        }
        self.settings = {**base, **overrides}
        self.config = folder / "topstory.toml"
        self.config.write_text(as_toml(self.settings))
        self.command = [sys.executable, "-c", f"{first}\n{MAIN}", "serve"]
        self.options: tuple[str, ...] = ()  # more arguments
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> Self:
        """Wait until it says where it listens, and takes connections."""
        errors = (self.folder / "stderr.txt").open("a")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TOPSTORY_")}
        self.process = subprocess.Popen(
            [*self.command, "--config", str(self.config), *self.options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
        )
        errors.close()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("topstory listening on "), self.errors()
        self.url = line.split()[3].rstrip(",")
        return self

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def workers(self) -> list[psutil.Process]:
        """The processes that it started."""
        assert self.process is not None
        return psutil.Process(self.process.pid).children()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send it a signal, and wait until its workers are gone too; its exit status."""
        workers = self.workers()
        process, self.process = self.process, None
        assert process is not None
        process.send_signal(number)
        status = process.wait(30)
        assert not psutil.wait_procs(workers, timeout=10)[1]
        assert process.stdout is not None
        process.stdout.close()
        return status

    def memory(self) -> int:
        """Bytes that its processes have written, and workers see; code is shared with others."""
        assert self.process is not None
        main, *workers = (self.process.pid, *(each.pid for each in self.workers()))
        own = sum(_kilobytes(each, "RssAnon") for each in (main, *workers))
        return 1024 * (own + _kilobytes(main, "RssShmem"))

    def errors(self) -> str:
        return (self.folder / "stderr.txt").read_text()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.process is not None:
            self.end()


def _kilobytes(process: int, kind: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:"))


def as_toml(settings: dict[str, Any]) -> str:
    """Tables as inline ones: enough for a test, and what the environment takes too."""
    return "".join(f"{key} = {_value(value)}\n" for key, value in settings.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)


def eventually(what: Any, seconds: float = 10.0) -> None:
    """Wait until it is true."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)
