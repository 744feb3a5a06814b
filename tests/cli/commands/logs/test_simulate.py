"""`topstory simulate`: the library's log, in a folder or as Yahoo's text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import answer, run

import topstory as ts
from topstory.events.formats.exporting import export
from topstory.events.formats.importing import import_log

WORLD = ("--users", 2000, "--events", 5000)


def test_the_folder_is_the_librarys_log(tmp_path: Path) -> None:
    report = answer("simulate", tmp_path / "day", *WORLD, "--seed", 3, "--visits-seed", 4)
    log = ts.EventLog.read(tmp_path / "day")
    same = ts.TodayModule(3, users=2000).random_log(5000, seed=4)
    assert np.array_equal(log.payoff, same.payoff)
    assert np.array_equal(log.position, same.position)
    assert (report["events"], report["articles"]) == (5000, len(log.articles))
    assert report["ctr"] == pytest.approx(log.ctr)
    files = [path for path in (tmp_path / "day").rglob("*") if path.is_file()]
    assert report["bytes"] == sum(path.stat().st_size for path in files)
    assert "5,000 simulated events" in run("simulate", tmp_path / "day", *WORLD).stdout


def test_raw_keeps_the_profiles(tmp_path: Path) -> None:
    run("simulate", tmp_path / "raw", *WORLD, "--raw")
    log = ts.EventLog.read(tmp_path / "raw")
    assert log.dimension == 1
    assert log.profiles is not None
    assert len(log.profiles) == 2000


@pytest.mark.parametrize("name", ["day.txt", "day.gz"])
def test_yahoos_text_comes_back_as_the_same_log(tmp_path: Path, name: str) -> None:
    report = answer("simulate", tmp_path / name, *WORLD, "--format", "r6a")
    assert report["bytes"] == (tmp_path / name).stat().st_size
    report = import_log("r6a", tmp_path / name, tmp_path / "back", strict=True)
    back, same = ts.EventLog.read(tmp_path / "back"), ts.TodayModule(users=2000).random_log(5000)
    assert report.events == 5000
    assert not report.noted
    for one, other in zip(back, same, strict=True):
        assert (one.pool, one.shown, one.payoff) == (other.pool, other.shown, other.payoff)
        assert one.timestamp == other.timestamp
        assert one.user == pytest.approx(other.user, abs=1e-6)
    for key, features in back.articles.items():
        assert features == pytest.approx(same.articles[key], abs=1e-6)


def test_the_export_is_the_same_text(tmp_path: Path) -> None:
    run("simulate", tmp_path / "day.txt", *WORLD, "--format", "r6a")
    export(ts.TodayModule(users=2000).random_log(5000), "r6a", tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "day.txt").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--raw", "--format", "r6a"), 2, "cannot hold raw profiles"),
        (("--events", "0"), 2, "--events"),
        (("--format", "xml"), 2, "--format"),
        (("--users", "99999999999"), 1, "users must be at most 2147483647"),
        (("--start", "someday"), 1, "not a time: 'someday'"),
        (("--start", "2009-05-01T00:30:00"), 1, "start must be a whole hour"),
    ],
)
def test_wrong_arguments_write_nothing(
    tmp_path: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    failed = run("simulate", tmp_path / "out", *arguments, status=status)
    assert words in failed.stderr.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    failed = run("simulate", tmp_path, *WORLD, status=1)
    assert "not a topstory log" in failed.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_what_r6a_cannot_hold_is_refused(tmp_path: Path) -> None:
    world = ts.TodayModule(users=100)
    with pytest.raises(ValueError, match="lacks them"):
        export(world.random_log(10, raw=True), "r6a", tmp_path / "x")
    logged = world.logged_by(ts.policy("random"), 10)
    with pytest.raises(ValueError, match="cannot store propensities"):
        export(logged, "r6a", tmp_path / "x")
    bare = ts.EventLog.from_arrays(np.ones((1, 1)), [["a b"]], [0], ["a b"], [1], {"a b": [1]})
    with pytest.raises(ValueError, match="r6a needs times"):
        export(bare, "r6a", tmp_path / "x")
    spaced = ts.EventLog.from_arrays(
        np.ones((1, 1)), [["a b"]], [0], ["a b"], [1], {"a b": [1]}, timestamps=[0]
    )
    with pytest.raises(ValueError, match="it has a space"):
        export(spaced, "r6a", tmp_path / "x")
    assert not list(tmp_path.iterdir())
