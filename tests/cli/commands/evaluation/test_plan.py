"""`topstory plan` prints what `plan` finds."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import answer, run, words

import topstory as ts
from topstory.evaluation import plan


def test_the_json_is_that_of_the_python_api(logs: Path) -> None:
    report = answer("plan", logs / "biased", "--lift", 0.1, "--shares", "0.05,0.2")
    found = plan(ts.EventLog.read(logs / "biased"), 0.1, [0.05, 0.2])
    assert (report["format"], report["version"]) == ("topstory-plan", 1)
    assert [each["visits"] for each in report["options"]] == [o.visits for o in found.options]
    assert report["options"][0]["days"] is None  # this log has no times
    assert report["design_effect"] == found.design_effect


def test_the_table_says_what_it_costs(logs: Path) -> None:
    printed = words(run("plan", logs / "recorded").stdout)
    assert "To see a lift of 5 %" in printed
    assert "Random articles earn" in printed
    assert "upper limit" in words(run("plan", logs / "uniform").stdout)
    assert "lift must be above 0" in words(
        run("plan", logs / "plain", "--lift", 0, status=1).stderr
    )
