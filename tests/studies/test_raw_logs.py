"""A study of raw logs: features are learned from the exploration, kept, and told."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.features.worlds import clear_world, little_log

import topstory as ts
from topstory.studies.facts import fingerprint


@cache
def raw_logs() -> dict[str, ts.EventLog]:
    """Three raw logs of one world."""
    world = clear_world()
    return {
        "exploration": world.random_log(20_000, "2009-04-01", 2, seed=1, raw=True),
        "tuning": world.random_log(4_000, "2009-05-01", 1, seed=2, raw=True),
        "evaluation": world.random_log(8_000, "2009-05-03", 1, seed=3, raw=True),
    }


@pytest.mark.parametrize(
    "change",
    [
        {"visitor": np.arange(2_000) % 40},
        {"profiles": {"likes": [["opera"] if i % 2 else ["golf"] for i in range(40)]}},
        {"profiles": {"gender": ["f", None] * 20, "likes": [["tea"]] * 40}},
        {"article_profiles": {"tags": [["stage"]] * 6}},
        {"article_profiles": {"topics": [["stage"]] * 6}},
    ],
)
def test_who_came_and_what_is_known_of_them_tell_logs_apart(change: dict[str, object]) -> None:
    """In a raw log every context is the constant: without them two logs look the same."""
    assert fingerprint(little_log(**change)) != fingerprint(little_log())


def test_a_raw_log_is_known_again_when_it_is_read_again(tmp_path: Path) -> None:
    little_log().write(tmp_path / "raw")
    once, again = (fingerprint(ts.EventLog.read(tmp_path / "raw")) for _ in range(2))
    assert once == again
