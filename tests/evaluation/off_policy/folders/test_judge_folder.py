"""A log judged part by part has the values of the log in one memory, on every engine."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engines.apart import ApartEngine

import topstory as ts
from topstory.evaluation.off_policy.folders import survey
from topstory.events.folder import parts
from topstory.events.folder.parts import LogFolder, read_parts

POOL = ["a", "b", "c"]


def logged(events: int = 1_500, visitors: str = "named", timed: bool = True) -> ts.EventLog:
    """Not uniform, with propensities; some visitors come again."""
    random = np.random.default_rng(5)
    users = np.column_stack([random.normal(size=(events, 2)), np.ones(events)])
    chance = np.array([0.5, 0.3, 0.2])
    shown = random.choice(3, events, p=chance)
    who = random.integers(events // 4, size=events)
    rate = 0.1 + 0.2 * (users[:, 0] > 0) * (shown == 1)
    known: dict[str, Any] = {}
    if visitors == "named":
        names = [None if number % 5 == 0 else f"visitor {number}" for number in who]
        known = {"decisions": {"visitor": names}}
    elif visitors == "table":
        users, known = users[: events // 4], {"visitor": who}
    return ts.EventLog.from_arrays(
        users,
        [POOL],
        np.zeros(events, int),
        [POOL[each] for each in shown],
        random.random(events) < rate,
        propensity=chance[shown],
        timestamps=1_700_000_000 + np.arange(events) * 600 if timed else None,
        **known,
    )


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 100 events at most."""
    monkeypatch.setattr(parts, "PART_BYTES", 1)
    monkeypatch.setattr(parts, "BATCH_ROWS", 100)


def trained(log: ts.EventLog) -> ts.Policy:
    return ts.train(ts.policy("linucb-disjoint", alpha=0.3), log, held_out=0).policy


def flat(value: Any, at: str = "") -> dict[str, Any]:
    """All numbers and words of a result, but for the time that it took."""
    if is_dataclass(value):
        return {
            key: each
            for field in fields(value)
            if field.name != "seconds"
            for key, each in flat(getattr(value, field.name), f"{at}.{field.name}").items()
        }
    if isinstance(value, dict):
        return {
            key: each
            for name, inner in value.items()
            for key, each in flat(inner, f"{at}[{name}]").items()
        }
    if isinstance(value, tuple):
        return {
            key: each
            for place, inner in enumerate(value)
            for key, each in flat(inner, f"{at}[{place}]").items()
        }
    return {at: value}


def check_equal(found: ts.Evaluation, wanted: ts.Evaluation, rounding: float) -> None:
    ours, theirs = flat(found), flat(wanted)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        if isinstance(value, float):
            assert ours[name] == pytest.approx(value, rel=rounding, abs=rounding, nan_ok=True), name
        else:
            assert ours[name] == value, name


@pytest.mark.parametrize("visitors", ["named", "table", "unknown"])
@pytest.mark.parametrize("estimator", ["snips", "dr", "dm"])
def test_parts_have_the_values_of_the_whole(
    estimator: str, visitors: str, small_parts: None, tmp_path: Path
) -> None:
    log = logged(visitors=visitors)
    log.write(tmp_path / "log")
    given = {"trained": trained(log[:300]), "random": ts.policy("random")}
    asked: dict[str, Any] = {"estimator": estimator, "bucket": "learning", "baseline": "random"}
    wanted = ts.evaluate(given, log, **asked)
    found = ts.evaluate(given, tmp_path / "log", engine="serial", **asked)
    assert len(LogFolder.opened(tmp_path / "log").parts(0, len(log))) > 15
    check_equal(found, wanted, 1e-9)
    for engine in ("local", ApartEngine()):
        check_equal(ts.evaluate(given, tmp_path / "log", engine=engine, **asked), found, 0.0)


def test_a_log_without_times_is_cut_into_the_same_runs(small_parts: None, tmp_path: Path) -> None:
    log = logged(timed=False)
    log.write(tmp_path / "log")
    given = {"trained": trained(log[:300])}
    found = ts.evaluate(given, tmp_path / "log", estimator="ips", engine="serial")
    check_equal(found, ts.evaluate(given, log, estimator="ips"), 1e-9)


@pytest.mark.parametrize("visitors", ["named", "table"])
@pytest.mark.parametrize("estimator", ["snips", "dr"])
def test_policies_by_name_learn_from_the_first_part(
    estimator: str, visitors: str, small_parts: None, tmp_path: Path
) -> None:
    log = logged(visitors=visitors)
    log.write(tmp_path / "log")
    names = ["egreedy-disjoint", "egreedy"]
    asked: dict[str, Any] = {"train_share": 0.37, "ridge": 5.0, "estimator": estimator}
    found = ts.evaluate(names, tmp_path / "log", engine="serial", **asked)
    wanted = ts.evaluate(names, log, **asked)
    assert found.trained_events == wanted.trained_events == 555
    check_equal(found, wanted, 1e-9)


def test_a_large_file_is_read_in_parts(small_parts: None, tmp_path: Path) -> None:
    log = logged()
    log.write(tmp_path / "log")
    read = list(read_parts(tmp_path / "log", 17, 1_404))
    assert max(map(len, read)) <= 100
    whole = ts.EventLog.concat(read)
    np.testing.assert_array_equal(whole.users, log[17:1_404].users)
    np.testing.assert_array_equal(whole.payoff, log.payoff[17:1_404])
    assert list(whole.shown) == list(log.shown[17:1_404])


def test_a_log_that_was_not_uniform_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By a sample of it."""
    monkeypatch.setattr(survey, "MAX_TESTED", 1_000)
    random, events = np.random.default_rng(0), 3_000
    shown = np.where(random.random(events) < 0.8, "a", "b")
    log = ts.EventLog.from_arrays(
        np.ones((events, 1)), [["a", "b"]], np.zeros(events, int), shown, np.zeros(events)
    )
    log.write(tmp_path / "log")
    with pytest.warns(ts.NotUniformWarning, match="not shown uniformly"):
        ts.evaluate({"random": ts.policy("random")}, tmp_path / "log", engine="serial")


def test_what_needs_the_log_in_one_memory_is_refused(tmp_path: Path) -> None:
    log = logged(200)
    log.write(tmp_path / "log")
    given = {"random": ts.policy("random")}
    with pytest.raises(ValueError, match=r"switch chooses its number by all weights at once.*dr"):
        ts.evaluate(given, tmp_path / "log", estimator="switch")
    with pytest.raises(ValueError, match="a closer look needs the log in memory"):
        ts.evaluate(given, tmp_path / "log", examine=True)
    with pytest.raises(ValueError, match="give the folder or its URL"):
        ts.evaluate(given, log, engine="serial")
