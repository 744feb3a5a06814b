"""As many connections as are configured, whatever the soft limit of open files is."""

from __future__ import annotations

import resource
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cli.running import run, words
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.api.messages import ArticleRequest

FEW = (
    "import resource\n"
    "_, most = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))"
)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_soft_limit_is_raised_for_all_connections(workers: int, tmp_path: Path) -> None:
    limits = {"connections": 600}
    with Served(tmp_path, FEW, limits=limits, workers=workers) as served, ExitStack() as stack:
        for _ in range(560):
            stack.enter_context(socket.create_connection(served.address))
        client = stack.enter_context(ts.Client(served.url, served.key, timeout=60))
        client.put_article("front", "only", ArticleRequest())
        assert client.decide([0.2, 0.3, 0.5, 1.0]).article == "only"
        assert "Too many open files" not in served.errors()


def test_more_connections_than_the_system_allows_are_rejected_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, 4_096))
    path = tmp_path / "topstory.toml"
    path.write_text(f"data = '{tmp_path / 'data'}'\n[limits]\nconnections = 5000")
    for arguments in (["--check-config"], []):
        result = run("serve", "--config", path, *arguments, status=1)
        assert "limits.connections: 5000 connections need 5264 open files" in words(result.output)
        assert "allows 4096 per process" in words(result.output)
    assert not (tmp_path / "data").exists()
