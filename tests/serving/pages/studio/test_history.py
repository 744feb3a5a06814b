"""The studio's samples: differences of counts, at every resolution, and over a restart."""

from __future__ import annotations

from pathlib import Path

from topstory.serving.pages.studio.history import DAY, HOUR, CountHistory


def filled(seconds: int, start: float = 1_000_000.0) -> CountHistory:
    history = CountHistory()
    for second in range(seconds + 1):
        history.add("front", start + second, (2.0 * second, 0.0, second / 10))
    return history


def test_what_was_added_since_a_time_is_the_difference_of_the_counts() -> None:
    history = filled(2 * HOUR)
    now = 1_000_000 + 2 * HOUR
    counts = (4.0 * HOUR, 0.0, HOUR / 5)
    assert history.since("front", now - 600, counts) == (1200.0, 0.0, 60.0)
    shows, *_ = history.since("front", now - HOUR, counts)
    assert abs(shows - 2 * HOUR) <= 2 * 60  # from samples of a minute
    assert history.since("front", now - DAY, counts) == counts  # all that there is
    assert history.since("other", now, counts) == (0.0, 0.0, 0.0)


def test_a_series_has_few_points_and_ends_with_the_last_sample() -> None:
    history = filled(2 * HOUR)
    now = 1_000_000 + 2 * HOUR
    live = history.series("front", now - 600, 10**6)
    assert (len(live), live[-1][0]) == (602, now)
    hour = history.series("front", now - HOUR, 30)
    assert len(hour) <= 30
    assert hour[-1][0] > now - 120
    assert filled(5).series("front", 0.0, 90)[0][0] == 1_000_000  # younger than asked for


def test_samples_outlive_a_restart_and_a_damaged_file_only_empties_the_charts(
    tmp_path: Path,
) -> None:
    file = tmp_path / "history.json"
    filled(2 * HOUR).write(file)
    now, counts = 1_000_000 + 2 * HOUR, (4.0 * HOUR, 0.0, HOUR / 5)
    again = CountHistory.read(file)
    shows, *_ = again.since("front", now - HOUR, counts)
    assert abs(shows - 2 * HOUR) <= 2 * 60
    file.write_text('{"front": {"60": [[1, "x"]]}}')
    assert CountHistory.read(file).series("front", 0.0, 90) == []
    assert CountHistory.read(tmp_path / "none").series("front", 0.0, 90) == []
