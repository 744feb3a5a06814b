"""Simulated traffic for the benchmarks: a day of a front page whose articles come and go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from topstory import EventLog

POOLS = 24
MIDNIGHT = 1_241_136_000  # 1 May 2009, the first day of the paper's log
CTR = 0.04
CHUNK = 1 << 18

Matrix = NDArray[np.float32]


def chunks(events: int) -> Iterator[tuple[int, int]]:
    """The events in pieces, so that building a log needs little more room than the log."""
    for start in range(0, events, CHUNK):
        yield start, min(start + CHUNK, events)


def memberships(random: np.random.Generator, rows: int, clusters: int) -> Matrix:
    """(rows, clusters + 1) soft memberships that sum to 1, most weight on one, and the constant."""
    logits = random.normal(size=(rows, clusters)).astype(np.float32)
    logits[np.arange(rows), random.integers(0, clusters, rows)] += 2.0 + np.log(clusters)
    weights = np.exp(logits)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.concatenate([weights, np.ones((rows, 1), np.float32)], axis=1)


def features_on(random: np.random.Generator, rows: int, dimension: int) -> Matrix:
    """(rows, dimension) zeros and ones: 4 to 7 features on, and the constant."""
    dense = np.zeros((rows, dimension), np.float32)
    wanted = random.integers(4, 8, rows)
    # Popular features come first, as in real profiles; a draw that repeats is simply on once.
    for draw in range(7):
        column = (random.random(rows) ** 2 * (dimension - 1)).astype(np.int64)
        dense[np.flatnonzero(wanted > draw), column[wanted > draw]] = 1.0
    dense[:, -1] = 1.0
    return dense


def rosters(random: np.random.Generator, pool_size: int) -> list[list[int]]:
    """The articles of each pool: from one to the next a tenth leaves, and some of it returns."""
    pools = [list(range(pool_size))]
    away: list[int] = []
    known = pool_size
    for _ in range(POOLS - 1):
        current = pools[-1].copy()
        for place in random.choice(pool_size, max(1, pool_size // 10), replace=False):
            gone = current[place]
            if away and random.random() < 0.25:
                current[place] = away.pop(0)
            else:
                current[place] = known
                known += 1
            away.append(gone)
        pools.append(current)
    return pools


def build(
    events: int,
    pool_size: int = 20,
    dimension: int = 6,
    article_features: int | None = 6,
    binary: bool = False,
    seed: int = 0,
) -> EventLog:
    """A uniformly random log of one day, with a CTR of about 3.5 %.

    Args:
        events: how many.
        pool_size: K.
        dimension: d, the constant included.
        article_features: m, the constant included; None for articles without features.
        binary: contexts of zeros and ones, a handful on, instead of soft memberships.
        seed: decides everything.
    """
    random = np.random.default_rng(seed)
    pools = np.array(rosters(random, pool_size))  # (POOLS, K)
    count = int(pools.max()) + 1
    kinds = 6 if article_features is None else article_features
    articles = memberships(random, count, kinds - 1)
    # What users of each feature think of articles of each kind, and how good an article is.
    taste = random.normal(size=(dimension, kinds)) * (0.25 if binary else 0.6)
    affinity = (taste @ articles.T).astype(np.float32)  # (d, articles)
    affinity[-1] = random.normal(scale=0.35, size=count)
    users = np.empty((events, dimension), np.float32)
    payoff = np.empty(events, np.float32)
    pool = (np.arange(events) * POOLS // max(events, 1)).astype(np.int32)
    shown = pools[pool, random.integers(0, pool_size, events)].astype(np.int32)
    for start, stop in chunks(events):
        make = features_on if binary else memberships
        rows = make(random, stop - start, dimension if binary else dimension - 1)
        liking = (rows * affinity.T[shown[start:stop]]).sum(axis=1)
        chance = 0.8 * CTR * np.exp(np.clip(liking, -2, 2))
        payoff[start:stop] = random.random(stop - start) < chance
        users[start:stop] = rows
    users.flags.writeable = False
    ids = [f"article-{a}" for a in range(count)]
    return EventLog.from_arrays(
        sparse.csr_matrix(users) if binary else users,
        [[ids[a] for a in members] for members in pools],
        pool,
        pa.DictionaryArray.from_arrays(shown, pa.array(ids)),
        payoff,
        articles={
            key: None if article_features is None else row.astype(np.float64)
            for key, row in zip(ids, articles, strict=True)
        },
        timestamps=MIDNIGHT + np.arange(events) * 86_400 // max(events, 1),
    )


def offsets(log: EventLog, seed: int = 0) -> dict[str, NDArray[np.float64]]:
    """A small offset for each article and user feature, as a bilinear model would give."""
    random = np.random.default_rng(seed)
    return {key: random.normal(scale=0.005, size=log.dimension) for key in log.article_ids}


def dense(log: EventLog) -> EventLog:
    """The same log with its sparse contexts written out."""
    users = np.array([log.context(t) for t in range(len(log))], np.float32)
    return replace(log, users=users)
