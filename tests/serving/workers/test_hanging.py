"""A worker that hangs is killed and restarted; and what a worker knows of the environment."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.serving.processes import Served, eventually
from tests.serving.workers.test_workers import USER, everywhere, metrics

import topstory as ts
from topstory.serving.api.messages import ArticleRequest

SECRET = "ab" * 32


def test_a_worker_that_hangs_is_restarted(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        **{"workers": 2, "limits": {"worker_seconds": 2.0}},
        "policy": {"name": "ucb"},
    }
    with Served(tmp_path, **settings) as served:
        with ts.Client(served.url, served.key, timeout=60) as client:
            client.put_article("front", "only", ArticleRequest())
        victim = served.workers()[0]
        os.kill(victim.pid, signal.SIGSTOP)
        eventually(lambda: not psutil.pid_exists(victim.pid), 60)
        eventually(lambda: len(served.workers()) == 2, 60)
        eventually(lambda: metrics(served)["topstory_workers"] == 2, 60)
        made = asyncio.run(everywhere(served, lambda client: client.decide(USER)))
        assert {each.article for each in made} == {"only"}
        assert metrics(served)["topstory_worker_restarts_total"] == 1
    assert f"process {victim.pid}) does not answer; killing it" in served.errors()


def test_a_worker_inherits_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with Served(tmp_path, workers=2, policy={"name": "ucb"}) as served:
        assert served.process is not None
        assert SECRET in _environment(served.process.pid)
        for worker in served.workers():
            assert SECRET not in _environment(worker.pid)
            assert "PATH=" in _environment(worker.pid)


def _environment(process: int) -> str:
    return Path(f"/proc/{process}/environ").read_text()
