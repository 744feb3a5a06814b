"""A log appended batch by batch is the log the batches were cut from."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.events.making import uniform_log

from topstory.events import EventLog
from topstory.events.folder import append, write
from topstory.events.folder.append import Appender
from topstory.events.formats.faults import CHANGED_FEATURES

POOLS = [["a", "b"], ["b", "c", "d"], ["a", "b"]]


def same(one: EventLog, other: EventLog) -> None:
    """Event by event, whatever the numbers of pools and articles."""
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert a.user.tolist() == b.user.tolist()
        assert (a.pool, a.shown, a.payoff, a.timestamp) == (b.pool, b.shown, b.payoff, b.timestamp)
        assert a.propensity == pytest.approx(b.propensity)


@given(
    cuts=st.lists(st.integers(0, 200), max_size=6),
    days=st.integers(1, 4),
    row_group=st.integers(3, 60),
    timed=st.booleans(),
    recorded=st.booleans(),
)
def test_appended_batches_read_as_the_log_they_were_cut_from(
    cuts: list[int],
    days: int,
    row_group: int,
    timed: bool,
    recorded: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    times = 1_241_136_000 + np.arange(200) * (days * 86_400 // 200)
    log = uniform_log(
        200,
        POOLS,
        articles={key: [ord(key), 1.0] for key in "abcd"},
        timestamps=times if timed else None,
        propensity=np.full(200, 0.25) if recorded else None,
    )
    folder = tmp_path_factory.mktemp("appended")
    ends = sorted({0, 200, *cuts})
    with pytest.MonkeyPatch.context() as patch, Appender(folder) as appender:
        patch.setattr(append, "ROW_GROUP_ROWS", row_group)
        patch.setattr(append, "FILE_ROWS", 4 * row_group)
        for start, stop in pairwise(ends):
            appender.append(log[start:stop])
        contents = appender.finish()
    again = EventLog.read(folder)
    same(again, log)
    assert again.articles.keys() == log.articles.keys()
    assert contents.pools == 2  # the first and the third are the same
    assert contents.recorded_propensity == recorded
    if timed and row_group > 50:
        assert len(contents.files) == days


def test_a_shuffled_log_makes_few_files(tmp_path: Path) -> None:
    times = np.random.default_rng(0).integers(0, 40, 5_000) * 86_400
    log = uniform_log(5_000, POOLS, timestamps=times)
    with Appender(tmp_path) as appender:
        for start in range(0, 5_000, 50):
            appender.append(log[start : start + 50])
        contents = appender.finish()
    assert len(contents.files) < write.MAX_FILES_PER_DAY * 40 + 50
    same(EventLog.read(tmp_path), log)


@pytest.mark.parametrize("change", ["dimension", "timed"])
def test_batches_that_do_not_go_together_are_refused(change: str, tmp_path: Path) -> None:
    log = uniform_log(9, POOLS)
    other = uniform_log(9, POOLS, dimension=3)
    if change == "timed":
        other = uniform_log(9, POOLS, timestamps=np.arange(9))
    with Appender(tmp_path) as appender:
        appender.append(log)
        with pytest.raises(ValueError, match=f"{change} is"):
            appender.append(other)


def test_an_article_that_changes_keeps_its_first_features(tmp_path: Path) -> None:
    with Appender(tmp_path) as appender:
        for value in (1.0, 2.0, 1.0):
            articles = {key: [value] for key in "abcd"}
            appender.append(uniform_log(9, POOLS, articles=articles))
        appender.finish()
    assert appender.articles.changed == dict.fromkeys("abcd", 1)
    features = EventLog.read(tmp_path).features
    assert features is not None
    assert np.array_equal(features, np.ones((4, 1)))
    assert "first" in CHANGED_FEATURES
