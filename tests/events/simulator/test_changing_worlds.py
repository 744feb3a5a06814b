"""Worlds that change, at rates that are known."""

import numpy as np

import topstory as ts

HOUR = 344_688


def test_a_world_at_rest_has_no_use_for_the_rates() -> None:
    still, again = ts.TodayModule(users=1000), ts.TodayModule(users=1000, taste_turn=0.0)
    pool = still.newsroom.pool(HOUR)
    np.testing.assert_array_equal(still.taste.appeal(pool), again.taste.appeal(pool))
    assert still.taste.at(HOUR) is still.taste.matrix


def test_tastes_turn_by_the_angle_that_was_asked_for() -> None:
    """Half a turn reverses them, a whole one brings them back."""
    taste = ts.TodayModule(users=1000, taste_turn=np.pi / 10).taste
    here = taste.at(HOUR)
    np.testing.assert_allclose(taste.at(HOUR + 240), -here, atol=1e-9)
    np.testing.assert_allclose(taste.at(HOUR + 480), here, atol=1e-9)
    for hour in (HOUR, HOUR + 100):
        assert abs(taste.at(hour).std() - 1) < 1e-9
        np.testing.assert_allclose(taste.at(hour).sum(axis=1), 0, atol=1e-9)


def test_popularity_walks_with_the_deviation_that_was_asked_for() -> None:
    """Over some 500 articles, ten hours of life: within 15 % of 0.2·√10, seed 0."""
    drifting, still = (
        ts.TodayModule(users=1000, popularity_drift=each).newsroom for each in (0.2, 0.0)
    )
    born = [(a, h) for h in range(HOUR, HOUR + 500) for a in drifting.born(h)]
    gaps = [drifting.odds(a, h + 10) - still.odds(still.article(a.id), h + 10) for a, h in born]
    assert len(gaps) > 300
    assert abs(np.std(gaps) / (0.2 * np.sqrt(10)) - 1) < 0.15
    assert drifting.odds(born[0][0], HOUR + 7) == drifting.odds(born[0][0], HOUR + 7)
