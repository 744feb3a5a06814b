"""Can the shown article be predicted from pairs of features? On held-out events, as `prediction`.

A logger that shows some articles if exactly one of two features is on is even in each feature, and
in every segment of users by one feature. It is not in the product of the two. So the gradient is
taken over all products of two features, from the uniform choice, on half of the events:

    G_a = sum_t (1{a was shown} - 1{a in pool_t} / K_t) (x_t x_t' - C)

where C is the mean of x x'. On the other half an article scores <G_a / n_a, x x' - C>. There are
too many products for their covariance; they count as if they had none. As in `prediction`, whatever
the weights are, the shown article's score less its pool's mean has mean 0 and a known variance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import Floats
from topstory.events.quality.independence import Finding, Rows, evenly_spaced, users_of
from topstory.events.quality.prediction import (
    MAX_ARTICLES,
    MAX_EVENTS,
    MIN_EVENTS,
    PRIOR_EVENTS,
    SPLIT,
    held_out,
    tail_of,
)
from topstory.events.quality.scaled_contexts import CUT, scaled_contexts, that_vary

if TYPE_CHECKING:
    from topstory.events.log import EventLog

MAX_PRODUCTS = 1 << 33  # multiplications: half a second
MAX_FEATURES = 256  # drawn at random if there are more
MIN_PRODUCTS = 1 << 11  # what a member of a pool costs at least, as products
NAME = "pairs"


def from_pairs(log: EventLog) -> Finding:
    """Fit the classifier on one half of the events, and test it on the other."""
    if log.dimension < 3:
        return Finding(NAME, 0, None, "contexts have fewer than two features")
    rows = evenly_spaced(len(log), MAX_EVENTS)
    rows = rows[log.pool_sizes[log.pool[rows]] > 1]
    each = max(min(log.dimension, MAX_FEATURES) ** 2, MIN_PRODUCTS)
    members = max(1, int(log.pool_sizes[log.pool[rows]].sum()))
    rows = rows[evenly_spaced(len(rows), int(len(rows) * min(1.0, MAX_PRODUCTS / each / members)))]
    if len(rows) < MIN_EVENTS:
        return Finding(NAME, 0, None, f"fewer than {MIN_EVENTS} events with a choice")
    users = users_of(log, rows)
    columns = that_vary(users)
    if len(columns) > MAX_FEATURES:
        drawn = np.random.default_rng(SPLIT).choice(columns, MAX_FEATURES, replace=False)
        columns = np.sort(drawn)
    x = scaled_contexts(users, columns)
    if x.shape[1] < 2:
        return Finding(NAME, 0, None, "fewer than two features differ between contexts")
    test = held_out(len(rows))
    own, mean, square = _scores(log, rows, x, test)
    variance = float((square - mean**2).clip(0).sum())
    if not variance > 0:
        return Finding(NAME, 0, None, "too few events of each article")
    z = float((own - mean).sum() / np.sqrt(variance))
    text = (
        f"in {len(own):,} held-out events the shown article scores {z:+.1f} standard deviations "
        f"above its pool, by a classifier of {x.shape[1] * (x.shape[1] - 1) // 2:,} pairs"
    )
    return Finding(NAME, len(own), tail_of(z), text)


def _scores(
    log: EventLog, rows: Rows, x: npt.NDArray[np.float32], test: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """Of each held-out event: the shown article's score, and the pool's mean and mean square."""
    sizes = log.pool_sizes[log.pool[rows]]
    first = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    event = np.repeat(np.arange(len(rows)), sizes)
    place = np.arange(len(event)) - first[event]
    surplus = ((place == log.position[rows][event]) - 1.0 / sizes[event]).astype(np.float32)
    article = log.pool_members[place + log.pool_offsets[log.pool[rows]][event]]
    order = np.argsort(article, kind="stable")
    ends = np.cumsum(np.bincount(article, minlength=len(log.article_ids)))
    expected = np.bincount(article, 1.0 / sizes[event], len(log.article_ids))
    moment = x.T @ x / np.float32(len(x))

    score = np.zeros(len(event), np.float32)  # 0: an article beyond the MAX_ARTICLES
    for a in np.argsort(-expected, kind="stable")[:MAX_ARTICLES].tolist():
        listed = order[ends[a - 1] if a else 0 : ends[a]]
        apart = test[event[listed]]
        learn, scored = listed[~apart], listed[apart]
        if not len(learn) or not len(scored):
            continue
        weights = _weights(x[event[learn]], surplus[learn], moment)
        y = x[event[scored]]
        score[scored] = ((y @ weights) * y).sum(axis=1) - (weights * moment).sum()
    # Products have long tails: no event decides alone.
    typical = float(np.sqrt(np.mean(score[test[event]] ** 2, dtype=np.float64)))
    score = score.clip(-CUT * typical, CUT * typical)
    mean = np.add.reduceat(score, first, dtype=np.float64) / sizes
    square = np.add.reduceat(np.square(score, dtype=np.float64), first) / sizes
    own = score[first + log.position[rows]].astype(np.float64)
    return own[test], mean[test], square[test]


def _weights(
    x: npt.NDArray[np.float32], surplus: npt.NDArray[np.float32], moment: npt.NDArray[Any]
) -> npt.NDArray[np.float32]:
    """(features, features) what the products say for an article, drawn towards 0 if it is rare."""
    gradient = (x * surplus[:, np.newaxis]).T @ x - surplus.sum() * moment
    seen = float(np.square(surplus).sum())  # about how often it was shown
    return np.asarray(gradient / np.float32(seen + PRIOR_EVENTS), np.float32)
