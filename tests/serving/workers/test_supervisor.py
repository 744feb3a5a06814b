"""A worker that dies is restarted, whatever goes wrong in between."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.serving.processes import Served, eventually
from tests.serving.workers.test_workers import USER, everywhere, metrics

import topstory as ts
from topstory.serving.api.messages import ArticleRequest
from topstory.serving.config.schema import Config
from topstory.serving.workers import supervisor
from topstory.serving.workers.supervisor import Supervisor


class WorkerHandle:
    """The second worker cannot be reached, and the third is never ready."""

    count = 0

    def __init__(self, place: int, inherited: list[int]) -> None:
        type(self).count += 1
        self.number, self.place = self.count, place
        self.ready, self.gone = asyncio.Event(), asyncio.Event()
        self.process = SimpleNamespace(pid=0, wait=lambda: 1, kill=self.gone.set)

    async def beat(self, seconds: float) -> bool:
        return True

    async def talk(self, *_: Any) -> None:
        if self.number == 2:
            raise RuntimeError("the socket is closed")
        if self.number != 3:
            self.ready.set()


def test_a_worker_that_cannot_be_reached_or_hangs_is_restarted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "WorkerHandle", WorkerHandle)
    monkeypatch.setattr(supervisor, "MIN_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(supervisor, "START_SECONDS", 0.05)
    monkeypatch.setattr(supervisor, "share", lambda host, port: socket.socket())

    async def work() -> None:
        shared: Any = SimpleNamespace(
            descriptors=[], descriptor=0, connected=lambda place, count: None
        )
        here = [socket.create_server(("127.0.0.1", 0))]
        workers = Supervisor(Config(), here, shared, shared)
        nothing: Any = None
        await workers.begin(nothing, nothing, nothing)
        workers.workers[0].gone.set()
        async with asyncio.timeout(5):
            while workers.workers[0].number != 4 or not workers.workers[0].ready.is_set():  # type: ignore[attr-defined]  # the test's own
                await asyncio.sleep(0.01)
        assert workers.restarts == 3
        assert "worker 0 was not ready after 0.05 seconds" in caplog.text
        for task in workers._keeping:
            task.cancel()
        here[0].close()

    asyncio.run(work())


def failing(mark: Path, program: Path = Path("/bin/false"), seconds: float = 300.0) -> str:
    """While this file is there this program is started as a worker; it has so long to be ready."""
    return (
        "import pathlib, sys\n"
        "from topstory.serving import child_process\n"
        "from topstory.serving.workers import supervisor\n"
        f"supervisor.START_SECONDS = {seconds}\n"
        f"mark, python = pathlib.Path({str(mark)!r}), sys.executable\n"
        "class Sys:\n"
        f"    executable = property(lambda _: {str(program)!r} if mark.exists() else python)\n"
        "child_process.sys = Sys()"
    )


def hanging(folder: Path) -> Path:
    """A program that does nothing, for long."""
    program = folder / "hang"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o700)
    return program


@pytest.mark.parametrize("hangs", [False, True])
def test_workers_that_cannot_start_are_reported_and_nothing_is_served(
    hangs: bool, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    mark.touch()
    if hangs:
        served = Served(tmp_path, failing(mark, hanging(tmp_path), seconds=0.5), workers=2)
        failure = "worker 0 was not ready after 0.5 seconds"
    else:
        served = Served(tmp_path, failing(mark), workers=2)
        failure = "worker 0 ended with status 1 before it was ready"
    with pytest.raises(AssertionError, match=failure):
        served.start()
    assert served.process is not None
    assert served.process.wait(30) == 1
    assert served.process.stdout is not None
    assert served.process.stdout.read() == ""
    served.process.stdout.close()
    assert "Traceback" not in served.errors()


def test_a_worker_that_cannot_start_again_is_tried_less_and_less_often(tmp_path: Path) -> None:
    """The other one serves on; and once it can be started it is as the others are."""
    mark = tmp_path / "mark"
    with Served(tmp_path, failing(mark), workers=2) as served:
        with ts.Client(served.url, served.key, timeout=60) as client:
            client.put_article("front", "only", ArticleRequest())
            made = client.decide(USER)
        # Whatever a file says by now, ids are signed and checked as at the start.
        secrets = served.data / "signing.toml"
        secrets.write_text(f'k1 = "{"ab" * 32}"')
        mark.touch()
        victim, _ = served.workers()
        victim.kill()
        restarts = re.compile(r"ended with status (-?\d+); restarting in ([\d.]+) s")
        eventually(lambda: len(restarts.findall(served.errors())) >= 4, 30)
        statuses, pauses = zip(*restarts.findall(served.errors())[:4], strict=True)
        assert statuses == ("-9", "1", "1", "1")
        assert [2 * float(pause) for pause in pauses[:3]] == [float(pause) for pause in pauses[1:]]
        assert metrics(served)["topstory_workers"] == 1
        asyncio.run(everywhere(served, lambda each: each.decide(USER)))
        mark.unlink()
        eventually(lambda: metrics(served)["topstory_workers"] == 2, 30)
        given = asyncio.run(everywhere(served, lambda each: each.feedback(made.decision, 1.0)))
        assert sum(each.repeated for each in given) == len(given) - 1
    assert "Traceback" not in served.errors()
