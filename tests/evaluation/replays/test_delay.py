"""Payoffs that come late: what is known is learned, what is not is not."""

from typing import Any

import numpy as np
import pytest
from tests.worlds import changing_pools, world

import topstory as ts

PLACE = world(seed=7)
POOLS = changing_pools(articles=12, size=4, count=15, seed=8)
LOG = PLACE.log(900, POOLS, np.random.default_rng(9))  # an event an hour


class Late:
    """A policy that is taught by hand: every event when it is known, none before."""

    def __init__(self, policy: ts.Policy, hours: int, batch: int) -> None:
        self.policy, self.hours, self.batch = policy, hours, batch
        self.now, self.owed = -1, list[tuple[int, Any]]()

    def __deepcopy__(self, memo: Any) -> "Late":
        return Late(self.policy.copy(), self.hours, self.batch)

    def add_article(self, article: str, features: Any) -> None:
        self.policy.add_article(article, features)

    def choose(self, user: Any, pool: Any) -> Any:
        self.now += 1
        if self.now % self.batch == 0:
            due = [owed for when, owed in self.owed if when + self.hours <= self.now]
            self.owed = self.owed[len(due) :]
            for trial in due:
                self.policy.learn(*trial)
        return self.policy.choose(user, pool)

    def learn(self, *trial: Any) -> None:
        self.owed.append((self.now, trial))


@pytest.mark.parametrize(("hours", "batch"), [(0, 1), (1, 1), (25, 1), (0, 40), (10, 7)])
def test_what_is_known_is_learned_and_nothing_else(hours: int, batch: int) -> None:
    policy = ts.policy("linucb-hybrid", alpha=0.4, seed=3)
    found = ts.replay(policy, LOG, delay=f"{hours}h", batch=batch)
    by_hand = ts.replay(Late(policy, hours, batch), LOG)
    np.testing.assert_array_equal(found.learning.sums, by_hand.learning.sums)
    assert found.policy.trials <= round(found.learning.trials)


def test_python_and_kernels_wait_alike() -> None:
    offset = {a: np.array([0.2, -0.1, 0.05, 0.0]) for a in PLACE.ids}
    table = ts.replay(ts.policy("ucb-warm", offset=offset), LOG, delay="5h", batch=3)
    function = ts.replay(
        ts.policy("ucb-warm", offset=lambda user, a: float(user @ offset[a])),
        *(LOG, 1.0, 0, None, "5h", 3),
    )
    np.testing.assert_array_equal(table.learning.sums, function.learning.sums)


def test_segments_wait_with_their_events() -> None:
    found = ts.replay(ts.policy("ucb-seg", alpha=0.4, seed=3), LOG, delay="20h")
    by_hand = ts.replay(Late(ts.policy("ucb-seg", alpha=0.4, seed=3), 20, 1), LOG)
    np.testing.assert_array_equal(found.learning.sums, by_hand.learning.sums)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delay": "soon"}, "such as 10min, at most 1e9 seconds in all; got 'soon'"),
        ({"delay": -1}, "delay must be a number of seconds"),
        ({"delay": float("nan")}, "delay must be a number of seconds"),
        ({"batch": 0}, "batch must be a whole number of events >= 1, got 0"),
    ],
)
def test_bad_delays_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ts.replay(ts.policy("ucb"), LOG, **given)


def test_a_log_without_times_has_no_delays() -> None:
    log = ts.EventLog.from_arrays([[1.0]] * 4, [["a", "b"]], [0] * 4, ["a", "b"] * 2, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="no timestamps, so nothing is known of delays"):
        ts.replay(ts.policy("ucb"), log, delay="1min")
