"""Logs to test with, and what it means for two to be the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from scipy import sparse

from topstory.events import EventLog, SparseContexts

MAY_FIRST = 1_241_136_000  # 2009-05-01, 00:00 UTC


def uniform_log(
    events: int, pools: list[list[str]], seed: int = 0, dimension: int = 6, **more: Any
) -> EventLog:
    """Articles shown uniformly from pools that follow one another; clicks at 10 %."""
    random = np.random.default_rng(seed)
    users = random.random((events, dimension))
    users[:, -1] = 1
    pool = np.arange(events) * len(pools) // max(events, 1)
    shown = [pools[p][random.integers(len(pools[p]))] for p in pool]
    return EventLog.from_arrays(users, pools, pool, shown, random.random(events) < 0.1, **more)


def columns(**changes: Any) -> dict[str, Any]:
    """Arguments of from_arrays for a good log of three events; change one to break it."""
    good: dict[str, Any] = {
        "users": [[0.2, 1.0], [0.7, 1.0], [0.1, 1.0]],
        "pools": [["a", "b"], ["b", "c", "d"]],
        "pool": [0, 0, 1],
        "shown": ["b", "a", "d"],
        "payoff": [1, 0, 0],
    }
    return good | changes


def parts(log: EventLog) -> dict[str, npt.NDArray[Any] | None]:
    """Every array of a log."""
    users: dict[str, npt.NDArray[Any] | None]
    if isinstance(log.users, SparseContexts):
        users = {"indptr": log.users.indptr, "indices": log.users.indices}
    else:
        users = {"users": log.users}
    return users | {
        "pool": log.pool,
        "position": log.position,
        "payoff": log.payoff,
        "recorded_propensity": log.recorded_propensity,
        "timestamps": log.timestamps,
        "pool_offsets": log.pool_offsets,
        "pool_members": log.pool_members,
        "features": log.features,
    }


def same(one: EventLog, other: EventLog) -> bool:
    """Equal to the bit, in everything."""
    mine, theirs = parts(one), parts(other)
    return (
        one.article_ids == other.article_ids
        and one.dimension == other.dimension
        and mine.keys() == theirs.keys()
        and all(_identical(mine[name], theirs[name]) for name in mine)
    )


def same_events(one: EventLog, other: EventLog) -> bool:
    """Equal event by event, whatever the numbers of pools and articles."""
    return len(one) == len(other) and all(
        a.user.tobytes() == b.user.tobytes()
        and (a.pool, a.shown, a.payoff, np.float32(a.propensity), a.timestamp)
        == (b.pool, b.shown, b.payoff, np.float32(b.propensity), b.timestamp)
        for a, b in zip(one, other, strict=True)
    )


def _identical(one: npt.NDArray[Any] | None, other: npt.NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
# Dense in some places and far apart in others: one-second, millisecond and microsecond steps.
moments = st.one_of(
    st.integers(MAY_FIRST, MAY_FIRST + 3 * 86_400).map(lambda s: s * 1_000_000),
    st.integers(MAY_FIRST * 1000, MAY_FIRST * 1000 + 10**6).map(lambda ms: ms * 1000),
    st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
)


@st.composite
def logs(
    draw: st.DrawFn,
    dimension: int | None = None,
    timed: bool | None = None,
    described: bool | None = None,
    sparse_users: bool | None = None,
) -> EventLog:
    """Any log: dense or sparse, timed or not, with or without features and propensities."""
    events = draw(st.integers(0, 12))
    pools = draw(
        st.lists(
            st.lists(ids, min_size=1, max_size=5, unique=True), min_size=min(events, 1), max_size=4
        )
    )
    pool = [draw(st.integers(0, len(pools) - 1)) for _ in range(events)]
    shown = [draw(st.sampled_from(pools[p])) for p in pool]
    width = dimension or draw(st.integers(1, 4))
    users: Any
    if draw(st.booleans()) if sparse_users is None else sparse_users:
        bits = st.lists(st.booleans(), min_size=width, max_size=width)
        rows = [draw(bits) for _ in range(events)]
        users = sparse.csr_array(np.array(rows, float).reshape(events, width))
    else:
        vectors = st.lists(floats, min_size=width, max_size=width)
        users = np.array([draw(vectors) for _ in range(events)], float).reshape(events, width)
    articles: dict[str, Any] | None = None
    if draw(st.booleans()) if described is None else described:
        # The same id has the same features in every log, so that logs can be united.
        listed = dict.fromkeys(key for members in pools for key in members)
        extra = draw(st.lists(ids, max_size=2))
        articles = {key: [float(len(key)), float(ord(key[0])), 1.0] for key in [*listed, *extra]}
    timestamps = None
    if draw(st.booleans()) if timed is None else timed:
        micros = [draw(moments) for _ in range(events)]
        timestamps = np.array(micros, np.int64).view("M8[us]")
    propensity = None
    if draw(st.booleans()):
        propensity = [draw(st.floats(2.0**-20, 1, width=32)) for _ in range(events)]
    payoff = [draw(floats) for _ in range(events)]
    return EventLog.from_arrays(
        users, pools, np.array(pool, int), shown, payoff, articles, timestamps, propensity
    )
