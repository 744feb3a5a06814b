"""`topstory choose` prints and writes what `ts.choose` finds."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.cli.running import answer, run, words
from tests.policies.comparing import same_model

import topstory as ts


def test_the_files_and_the_json_are_those_of_the_python_api(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "chosen"
    report = answer("choose", logs / "recorded", out, "--policy", "egreedy,linucb-disjoint")
    log = ts.EventLog.read(logs / "recorded")
    found = ts.choose(log, policies=["egreedy", "linucb-disjoint"])
    assert (report["format"], report["version"]) == ("topstory-choose", 1)
    assert (report["winner"], report["sure"]) == (found.winner, found.sure)
    assert (report["verdict"], report["why"]) == (found.verdict, found.why)
    assert list(report["together"]) == list(found.together)
    for name, lift in found.together.items():
        assert report["together"][name]["value"] == lift.value
        assert report["together"][name]["interval"] == list(lift.interval)
    assert len(report["evaluation"]["values"]) == 3
    assert msgspec.json.decode((out / "choice.json").read_bytes())["winner"] == found.winner
    assert same_model(ts.Policy.load(out / "policy.safetensors"), found.policy)


def test_the_verdict_comes_first(logs: Path, tmp_path: Path) -> None:
    printed = words(run("choose", logs / "recorded", tmp_path / "out").stdout)
    assert " looks best" in printed[:60] or printed.startswith("Run ")
    for said in ("95 % for all at once", "as logged", "policy.safetensors", "Intervals cover"):
        assert said in printed


def test_a_log_that_cannot_say_is_one_sentence_and_writes_nothing(
    logs: Path, tmp_path: Path
) -> None:
    failed = run("choose", logs / "biased", tmp_path / "out", status=1).stderr
    assert "does not say with what probability" in words(failed)
    assert not (tmp_path / "out").exists()


def test_the_report_is_the_answer_as_a_page(logs: Path, tmp_path: Path) -> None:
    file = tmp_path / "pages" / "report.html"
    found = answer("choose", logs / "recorded", tmp_path / "out", "--report", file)
    page = file.read_text("utf-8")
    assert page.count("<circle") == 2 * len(found["together"])  # for a phone, and for more
    assert "what is shown today" in page
    assert page.count('class="recommended"') == found["sure"]
    assert ("Deploy " in page) or ("Change nothing yet" in page)
    assert "<script" not in page
