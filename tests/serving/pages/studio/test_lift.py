"""The lift in words: never surer than its interval."""

from __future__ import annotations

from topstory.serving.pages.studio.lift import lift


def test_more_visits_make_it_narrower_and_sure() -> None:
    few, many = lift((400, 24), (100, 4)), lift((400_000, 24_000), (100_000, 4_000))
    assert few.words == "too early to say"
    assert many.words == "certainly better"
    assert many.value == few.value
    assert many.interval is not None
    assert 0.3 < many.interval[0] < 0.5 < many.interval[1] < 0.7
    assert lift((400_000, 4_000), (100_000, 4_000)).words == "certainly worse"


def test_without_what_it_needs_it_says_so() -> None:
    assert lift((0, 0), (0, 0)).value is None
    assert lift((10, 1), (10, 1), payoffs=(-5.0, 5.0)).interval is None
    assert lift((10, 20), (10, 1)).words.startswith("no interval")
