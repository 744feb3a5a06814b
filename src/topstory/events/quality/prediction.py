"""Can the shown article be predicted from the context? On held-out events, better than by chance?

The classifier is one Newton step of a multinomial logistic regression, from the uniform choice. On
half of the events, drawn at random, it adds up the gradient

    G_a = sum_t (1{a was shown} - 1{a in pool_t} / K_t) x_t

and takes W_a = G_a S^-1 / n_a, with S the covariance of x. On the other half an article scores
W_a x. If articles are shown uniformly, then given all contexts and pools the score of the shown one
has the pool's mean score as its mean, and their variance as its variance: so the sum of the
differences, divided by its standard deviation, is normal, whatever W is.

x holds the context's features and their squares, so that users in the middle count too; of many
features those whose gradient is largest. They are scaled, and cut at three standard deviations, so
that no event decides alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import Floats, blocks
from topstory.events.columns.contexts import Contexts
from topstory.events.quality.independence import Finding, Rows, evenly_spaced, users_of
from topstory.events.quality.scaled_contexts import (
    MAX_CANDIDATES,
    Scaled,
    scaled_contexts,
    squares_of,
    that_vary,
)

if TYPE_CHECKING:
    from topstory.events.log import EventLog

MAX_EVENTS = 200_000  # of a longer log, evenly spaced
MAX_NUMBERS = 1 << 25  # features of all events
MAX_PRODUCTS = 1 << 32  # multiplications of a context by an article's weights
MIN_EVENTS = 400
MAX_ARTICLES = 2_000  # most shown; the others score 0
MAX_FEATURES = 128  # that tell most; with their squares twice as many
PRIOR_EVENTS = 10  # without any surplus, that an article's weights are drawn towards 0 by
SPLIT = 0x243F6A88  # seeds the split in halves
NAME = "contexts"


def from_contexts(log: EventLog) -> Finding:
    """Fit the classifier on one half of the events, and test it on the other."""
    if log.dimension < 2:
        return Finding(NAME, 0, None, "contexts hold only the constant")
    features = 2 * min(log.dimension, MAX_FEATURES)
    articles = min(len(log.article_ids), MAX_ARTICLES)
    most = min(MAX_EVENTS, MAX_NUMBERS // min(log.dimension, MAX_CANDIDATES))
    most = min(most, MAX_PRODUCTS // (features * max(articles, 1)))
    rows = evenly_spaced(len(log), most)
    rows = rows[log.pool_sizes[log.pool[rows]] > 1]
    if len(rows) < MIN_EVENTS:
        return Finding(NAME, 0, None, f"fewer than {MIN_EVENTS} events with a choice")
    test = held_out(len(rows))
    surplus = _Surplus.of(log, rows[~test])
    x = _features(users_of(log, rows), surplus, ~test)
    if not x.shape[1]:
        return Finding(NAME, 0, None, "all contexts are the same")
    weights = surplus.weights(x[~test])
    total, variance, hits, chance = _score(log, rows[test], x[test], surplus.known, weights)
    if not variance > 0:
        return Finding(NAME, 0, None, "too few events of each article")
    tested = int(test.sum())
    text = (
        f"a classifier predicts the article of {hits / tested:.2%} of {tested:,} held-out "
        f"events, where chance gives {chance / tested:.2%}"
    )
    return Finding(NAME, tested, tail_of(total / np.sqrt(variance)), text)


def held_out(events: int) -> npt.NDArray[np.bool_]:
    """(n,) the half that a classifier is tested on, drawn at random."""
    return np.random.default_rng(SPLIT).random(events) >= 0.5


def tail_of(z: float) -> float:
    """The probability that a standard normal number is larger.

    >>> tail_of(0.0)
    0.5
    """
    from scipy.special import ndtr

    return float(ndtr(-z))


def _features(users: Contexts, surplus: _Surplus, learn: npt.NDArray[np.bool_]) -> Scaled:
    """(n, up to 2 MAX_FEATURES) with squares; of more, the features that tell most."""
    columns = that_vary(users)
    if len(columns) > MAX_FEATURES:
        told = [_told(users, columns[i : i + 1], surplus, learn) for i in range(len(columns))]
        columns = np.sort(columns[np.argsort(told, kind="stable")[-MAX_FEATURES:]])
    x = scaled_contexts(users, columns)
    return np.concatenate((x, squares_of(users, x)), axis=1)


def _told(
    users: Contexts, column: npt.NDArray[np.intp], surplus: _Surplus, learn: npt.NDArray[np.bool_]
) -> float:
    x = scaled_contexts(users, column)
    x = np.concatenate((x, squares_of(users, x)), axis=1)[learn]
    squares = surplus.gradient(x) ** 2 / (surplus.expected + PRIOR_EVENTS)[:, np.newaxis]
    return float(squares.sum(axis=0).max(initial=0))


class _Surplus(NamedTuple):
    """What was shown of each article, less what was expected, event by event."""

    known: Any  # (articles of the log,) the row of each article here, or -1
    expected: Floats  # (articles,) impressions
    seen: Any  # (articles, events) sparse: 1 where it was shown
    listed: Any  # (articles, pools) sparse: 1/K where it is in the pool
    served: Any  # (pools, events) sparse: 1

    @classmethod
    def of(cls, log: EventLog, rows: Rows) -> _Surplus:
        from scipy.sparse import csr_array

        pool, place = log.pool[rows], log.pool_offsets[log.pool[rows]] + log.position[rows]
        shown = log.pool_members[place]
        used, inverse = np.unique(pool, return_inverse=True)
        sizes = log.pool_sizes[used]
        members = np.concatenate([log.pool_members[a:b] for a, b in _ends(log, used)])
        times = np.bincount(inverse, minlength=len(used))
        each = np.repeat(times / sizes, sizes)
        expected = np.bincount(members, each, len(log.article_ids)).astype(np.float64)
        chosen = np.argsort(-expected, kind="stable")[:MAX_ARTICLES]
        known = np.full(len(log.article_ids), -1)
        known[chosen] = np.arange(len(chosen))

        ones, row = np.ones(len(rows)), np.arange(len(rows))
        mine = known[shown]
        seen = csr_array(
            (ones[mine >= 0], (mine[mine >= 0], row[mine >= 0])), (len(chosen), len(rows))
        )
        served = csr_array((ones, (inverse, row)), (len(used), len(rows)))
        column = known[members]
        share, of_pool = np.repeat(1.0 / sizes, sizes), np.repeat(np.arange(len(used)), sizes)
        listed = csr_array(
            (share[column >= 0], (column[column >= 0], of_pool[column >= 0])),
            (len(chosen), len(used)),
        )
        return cls(known, expected[chosen], seen, listed, served)

    def gradient(self, x: Scaled) -> Floats:
        """(articles, features)."""
        return np.asarray(self.seen @ x - self.listed @ (self.served @ x))

    def weights(self, x: Scaled) -> Floats:
        """(articles, features)."""
        covariance = np.cov(x, rowvar=False).reshape(x.shape[1], x.shape[1])
        ridge = covariance + 0.01 * np.eye(len(covariance))
        step = np.linalg.solve(ridge, self.gradient(x).T).T
        return np.asarray(step / (self.expected + PRIOR_EVENTS)[:, np.newaxis])


def _ends(log: EventLog, pools: npt.NDArray[Any]) -> list[tuple[int, int]]:
    return list(zip(log.pool_offsets[pools], log.pool_offsets[pools + 1], strict=True))


def _score(
    log: EventLog, rows: Rows, x: npt.NDArray[np.float32], known: Any, weights: Floats
) -> tuple[float, float, int, float]:
    """Sums over the events: shown score less the mean, its variance, hits, and hits by chance."""
    total = variance = chance = 0.0
    hits = 0
    articles = max(1, len(weights))
    for start, stop in blocks(len(rows), max(1, (1 << 22) // articles)):
        each = np.concatenate((x[start:stop] @ weights.T, np.zeros((stop - start, 1))), axis=1)
        pool = log.pool[rows[start:stop]]
        sizes = log.pool_sizes[pool]
        first = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        event = np.repeat(np.arange(stop - start), sizes)
        place = np.arange(len(event)) - first[event] + log.pool_offsets[pool][event]
        score = each[event, known[log.pool_members[place]]]  # -1, the last column: 0
        mean = np.add.reduceat(score, first) / sizes
        own = score[first + log.position[rows[start:stop]]]
        total += float((own - mean).sum())
        variance += float((np.add.reduceat(score**2, first) / sizes - mean**2).clip(0).sum())
        hits += int((own >= np.maximum.reduceat(score, first)).sum())
        chance += float((1.0 / sizes).sum())
    return total, variance, hits, chance
