"""Vowpal Wabbit's text: examples of several lines, one labelled action in each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vowpalwabbit
from tests.events.formats.whole_logs import whole

from topstory.events import EventLog
from topstory.events.formats.faults import BadRow, Faults
from topstory.events.formats.pipeline.descriptions import CHANGED_FEATURES
from topstory.events.formats.vw.encodings import FeatureHasher
from topstory.events.formats.vw.identical_actions import MERGED, MERGED_UNKNOWN, SAME_ID
from topstory.events.formats.vw.text_line import vw_line

EXAMPLES = """\
shared |User user=Tom time=morning age:0.5
|Action article=sports
0:-1:0.25 |Action article=politics length:2
 |Action article=music

shared |User user=Anna
0:0.0:0.5 |Action article=sports
|Action article=music
"""


def log_of(folder: Path, text: str, faults: Faults | None = None, **options: Any) -> EventLog:
    path = folder / "examples.txt"
    path.write_text(text)
    return whole("vw", path, faults=faults, **options)


def test_examples_are_events(tmp_path: Path) -> None:
    log = log_of(tmp_path, EXAMPLES, id="Action^article")
    assert [event.pool for event in log] == [("sports", "politics", "music"), ("sports", "music")]
    assert log.shown.tolist() == ["politics", "sports"]
    assert log.payoff.tolist() == [1.0, 0.0]
    assert log.propensity.tolist() == [0.25, 0.5]
    assert log.timestamps is None


def test_features_are_hashed_by_name(tmp_path: Path) -> None:
    log, hashing = log_of(tmp_path, EXAMPLES, dimensions=16), FeatureHasher(16)
    user = [("User^user=Tom", 1.0), ("User^time=morning", 1.0), ("User^age", 0.5)]
    np.testing.assert_array_equal(
        np.asarray(log.users)[0], hashing.vectors([hashing.places(user)])[0]
    )
    article = [("Action^article=politics", 1.0), ("Action^length", 2.0)]
    row = log.articles["Action^article=politics Action^length:2"]
    np.testing.assert_array_equal(row, hashing.vectors([hashing.places(article)])[0])


def test_a_tag_touches_the_bar_or_has_a_quote() -> None:
    assert vw_line("0:1:0.5 sports|a b").tag == "sports"
    assert vw_line("0:1:0.5 'sports |a b").tag == "sports"
    assert vw_line("sports|a b").label is None
    assert vw_line("0:1:0.5 | b").tag == ""


def test_tags_name_the_actions(tmp_path: Path) -> None:
    log = log_of(tmp_path, "shared | x\n0:1:0.5 a| f\nb| f\n")
    assert log[0].pool == ("a", "b")
    assert log[0].shown == "a"


def test_an_example_without_a_shared_line_has_a_user_of_the_constant(tmp_path: Path) -> None:
    log = log_of(tmp_path, "0:1:0.5 a| f\nb| f\n", dimensions=3)
    assert np.asarray(log.users)[0].tolist() == [0.0, 0.0, 1.0]


def test_identical_actions_are_merged(tmp_path: Path) -> None:
    faults = Faults()
    log = log_of(tmp_path, "shared | x\na| f\n0:1:0.5 b| f\na| f\n", faults)
    assert (log[0].pool, log[0].shown, log[0].propensity) == (("a", "b"), "b", 0.5)
    log = log_of(tmp_path, "shared | x\na| f\nb| f\n0:1:0.5 a| f\n", faults)
    assert (log[0].pool, log[0].shown, log[0].propensity) == (("a", "b"), "a", 0.5)
    assert faults.notes == {MERGED: 1, MERGED_UNKNOWN: 1}


GOOD = "shared | x\n0:1:0.5 a| f\nb| f\n"
BAD = [
    ("there is no |", "shared | x\n0:1:0.5\n", 6),
    ("the label is not action:cost:probability", "shared | x\n0:1 a| f\n", 6),
    ("the label is not action:cost:probability", "shared | x\n0:1:x a| f\n", 6),
    ("the weight of a namespace is not a number", "shared |n:x y\n0:1:1 a| f\n", 5),
    ("a shared line is not the first of its example", "0:1:1 a| f\nshared | x\n", 6),
    ("not exactly one action of the example has a label", "shared | x\na| f\nb| f\n", 5),
    ("not exactly one action of the example has a label", "0:1:1 a| f\n0:1:1 b| f\n", 5),
    (SAME_ID, "0:1:1 a| f\na| g\n", 5),
    ("the pool is empty", "shared | x\n", 5),
    ("the propensity is outside (0, 1]", "0:1:2 a| f\n", 5),
    ("the payoff is not a finite number", "0:nan:1 a| f\n", 5),
    ("a user feature is not a finite number", "shared | x:1e99\n0:1:1 a| f\n", 5),
    ("an action's feature is not a finite number", "shared | x\n0:1:1 c| f:inf\n", 6),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "example", "number"), BAD)
def test_a_bad_example_is_counted_by_its_reason(
    tmp_path: Path, reason: str, example: str, number: int
) -> None:
    faults = Faults()
    log = log_of(tmp_path, f"{GOOD}\n{example}\n\n{GOOD}", faults)
    assert len(log) == 2
    assert faults.counts == {reason: 1}
    assert faults.first[reason].line == number
    with pytest.raises(BadRow, match=rf"examples\.txt:{number}: "):
        log_of(tmp_path, f"{GOOD}\n{example}\n\n{GOOD}")


def test_a_refused_example_describes_no_action(tmp_path: Path) -> None:
    faults = Faults()
    bad, good = "a| f:1\nb| f:1\n", "0:1:0.5 a| f:2\nb| f:2\n"
    log, hashing = log_of(tmp_path, f"{bad}\n{good}", faults), FeatureHasher(32)
    expected = hashing.vectors([hashing.places([("f", 2.0)])])[0]
    for key in "ab":
        np.testing.assert_array_equal(log.articles[key], expected)
    assert (faults.bad, faults.notes) == (1, {})


def test_changed_features_are_noted_once_an_event(tmp_path: Path) -> None:
    faults = Faults()
    first, later = "0:1:0.5 a| f\nb| f\nc| f\n", "0:1:0.5 a| f\nb| f:2\nc| f:2\n"
    log_of(tmp_path, "\n".join([first, later, later, later, first]), faults)
    assert faults.notes == {CHANGED_FEATURES: 3}
    assert (faults.first[CHANGED_FEATURES].line, faults.first[CHANGED_FEATURES].text) == (5, "b")


def test_ids_made_of_numbers_keep_every_digit(tmp_path: Path) -> None:
    text = "0:1:0.5 |n key:12345678\n|n key:12345679\n|n key:0.1234567\n"
    ids = ("12345678", "12345679", "0.1234567")
    assert log_of(tmp_path, text, id="n^key")[0].pool == ids
    assert log_of(tmp_path, text)[0].pool == tuple(f"n^key:{each}" for each in ids)


def test_a_file_without_blank_lines_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topstory.events.formats.vw.text.MAX_EXAMPLE_LINES", 10)
    with pytest.raises(ValueError, match=r"examples\.txt:1: more than 10 lines without a blank"):
        log_of(tmp_path, "1:1:0.5 | a\n" * 11)


def test_it_reads_what_vowpal_wabbit_reads(tmp_path: Path) -> None:
    log = log_of(tmp_path, EXAMPLES)
    arguments = f"--cb_explore_adf --quiet -d {tmp_path / 'examples.txt'}"
    workspace = vowpalwabbit.Workspace(arguments)
    assert workspace.get_weighted_examples() == len(log)
    workspace.finish()
