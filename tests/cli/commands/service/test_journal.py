"""`topstory export-journal`; backups, `serve` and `new-key` are tested with the service."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import answer, run, words
from tests.serving.making import add_articles, config, visits
from tests.serving.making import run as run_service

import topstory as ts
from topstory.serving.service.service import Service


async def traffic(service: Service) -> None:
    await add_articles(service, 3)
    await visits(service, 60)


def test_a_journal_becomes_a_log(tmp_path: Path) -> None:
    run_service(config(tmp_path / "data"), traffic)
    report = answer("export-journal", tmp_path / "data", tmp_path / "log", "--unfinished")
    excluded = {"excluded": 0, "excluded_payoffs": 0, "earlier": 0}
    assert report == {"pool": "front", "part": "all", "events": 60, "open": 0, **excluded}
    assert len(ts.EventLog.read(tmp_path / "log")) == 60
    uniform = answer(
        *("export-journal", tmp_path / "data", tmp_path / "uniform"),
        *("--part", "uniform", "--unfinished"),
    )
    log = ts.EventLog.read(tmp_path / "uniform")
    assert 0 < len(log) == uniform["events"] < 60
    assert log.recorded_propensity is None
    printed = run("export-journal", tmp_path / "data", tmp_path / "log", "--unfinished").stdout
    assert printed.startswith("Wrote 60 events to")


def test_an_export_that_fails_says_why(tmp_path: Path) -> None:
    result = run("export-journal", tmp_path, tmp_path / "log", status=1)
    assert "there is no journal here" in words(result.output)
    run_service(config(tmp_path / "data"), traffic)
    result = run("export-journal", tmp_path / "data", tmp_path / "log", status=1)
    assert "60 may still get feedback" in words(result.output)
    result = run("export-journal", tmp_path / "data", tmp_path / "log", "--pool", "x", status=1)
    assert "the journal has no pool 'x'; there are front" in words(result.output)
    run("export-journal", tmp_path / "data", tmp_path / "log", "--part", "best", status=2)
