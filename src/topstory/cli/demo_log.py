"""A small simulated log, made in memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events import EventLog

GROUPS = 5  # of users, and of topics
POOL = 20
HOURS = 24
LIFETIME = 20  # hours an article stays in the pool: one changes every hour
POPULARITY, TASTE, OWN_TASTE = 0.3, 1.2, 0.2  # deviations, in log-odds
MIDDLE = -3.4  # log-odds of an average article for an average user
START = 1_241_136_000  # 2009-05-01, 00:00 UTC

Floats = npt.NDArray[np.float64]


def simulated_log(events: int, explored: int, seed: int) -> tuple[EventLog, EventLog]:
    """A day of random exploration, and another of the same users with other articles.

    Users are soft members of five groups, articles of five topics; the constant 1 comes last in
    both. The log-odds of a click are xᵀWf + the article's popularity + its own appeal to x.

    >>> explored, log = simulated_log(1000, 500, seed=0)
    >>> len(explored), len(log), log.dimension, len(log[0].pool)
    (500, 1000, 6, 20)
    """
    random = np.random.default_rng(seed)
    W = random.normal(0, TASTE, (GROUPS, GROUPS))
    # Groups differ in what they like, not in how much they click, and topics in whom they please.
    W -= W.mean(axis=1, keepdims=True)
    W -= W.mean(axis=0)
    before = _days(explored, W, random, "early", START - HOURS * 3600)
    return before, _days(events, W, random, "story", START)


def _days(events: int, W: Floats, random: np.random.Generator, prefix: str, start: int) -> EventLog:
    changes = POOL // LIFETIME
    count = POOL + changes * (HOURS - 1)
    topics, own = _memberships(count, 0.4, random), random.normal(0, OWN_TASTE, (count, GROUPS))
    popularity = random.normal(MIDDLE, POPULARITY, count)
    appeal = topics[:, :-1] @ W.T + own  # (articles, groups)

    users = _memberships(events, 0.25, random)
    hour = np.arange(events) * HOURS // max(events, 1)
    position = random.integers(POOL, size=events)
    shown = hour * changes + position  # the oldest articles leave as new ones come
    odds = popularity[shown] + np.einsum("ng,ng->n", users[:, :-1], appeal[shown])
    clicked = random.random(events) < 1 / (1 + np.exp(-odds))
    ids = [f"{prefix}-{a:03}" for a in range(count)]
    return EventLog.from_arrays(
        users,
        [ids[first : first + POOL] for first in range(0, changes * HOURS, changes)],
        hour,
        pa.DictionaryArray.from_arrays(shown.astype(np.int32), pa.array(ids)),
        clicked,
        articles=dict(zip(ids, topics, strict=True)),
        timestamps=start + np.arange(events) * (HOURS * 3600) // max(events, 1),
    )


def _memberships(count: int, concentration: float, random: np.random.Generator) -> Floats:
    shares = random.dirichlet(np.full(GROUPS, concentration), count)
    return np.column_stack((shares, np.ones(count)))
