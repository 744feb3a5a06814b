"""Sums over each article's trials: all that a model learns of them, without its prior.

They add up: those of two logs, or of two policies, are the sums over both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from topstory.events import EventLog
from topstory.events.columns.contexts import take_contexts
from topstory.kernels.compilation import Floats
from topstory.models.contexts import dense_rows

CHUNK = 1 << 16  # events whose contexts are made dense at a time


@dataclass(frozen=True, eq=False)
class ArticleSums:
    """One row for each article. An average keeps shows and payoffs by segment instead of S and b.

    >>> one = ArticleSums(("rain",), np.ones((1, 1, 1)), np.ones((1, 1)), np.ones((1, 1)))
    >>> two = ArticleSums(("sun",), np.ones((1, 1, 1)), np.ones((1, 1)), np.ones((1, 1)))
    >>> both = one.plus(two).plus(one)
    >>> both.ids, both.b.tolist()
    (('rain', 'sun'), [[2.0], [1.0]])
    """

    ids: tuple[str, ...]
    S: Floats  # (articles, d, d) Σ xxᵀ; or (articles, segments) how often it was shown
    b: Floats  # (articles, d) Σ r·x; or (articles, segments) Σ r
    features: Floats  # (articles, m); the constant alone if articles have none
    trials: float = 0.0
    payoff: float = 0.0  # Σ r over all articles
    squares: float = 0.0  # Σ r²
    A0: Floats | None = None  # what removed articles leave in hybrid's A0
    b0: Floats | None = None  # and in its b0

    def plus(self, other: ArticleSums) -> ArticleSums:
        """The sums over both."""
        ids = tuple(dict.fromkeys((*self.ids, *other.ids)))
        place = {article: i for i, article in enumerate(ids)}
        S, b = (np.zeros((len(ids), *old.shape[1:])) for old in (self.S, self.b))
        features = np.zeros((len(ids), self.features.shape[1]))
        for each in (self, other):
            rows = [place[article] for article in each.ids]
            S[rows] += each.S
            b[rows] += each.b
            features[rows] = each.features
        return replace(
            self,
            ids=ids,
            S=S,
            b=b,
            features=features,
            trials=self.trials + other.trials,
            payoff=self.payoff + other.payoff,
            squares=self.squares + other.squares,
            A0=_sum(self.A0, other.A0),
            b0=_sum(self.b0, other.b0),
        )

    def times(self, factor: float) -> ArticleSums:
        """The sums of trials that each count `factor` times."""
        totals = {name: factor * getattr(self, name) for name in ("trials", "payoff", "squares")}
        return replace(
            self,
            S=factor * self.S,
            b=factor * self.b,
            **totals,
            A0=None if self.A0 is None else factor * self.A0,
            b0=None if self.b0 is None else factor * self.b0,
        )


def _sum(one: Floats | None, two: Floats | None) -> Floats | None:
    if one is None or two is None:
        return two if one is None else one
    return one + two


def sum_articles(log: EventLog, weights: Floats | None = None) -> ArticleSums:
    """The sums of a log's articles, of those that were shown.

    Args:
        log: what happened.
        weights: (n,) how often each event counts; None: once.

    >>> log = EventLog.from_arrays(
    ...     [[2.0, 1.0], [0.0, 1.0]], [["rain", "sun"]], [0, 0], ["sun", "sun"], [1, 0]
    ... )
    >>> sums = sum_articles(log)
    >>> sums.ids, sums.S[0].tolist(), sums.b[0].tolist()
    (('sun',), [[4.0, 2.0], [2.0, 2.0]], [2.0, 1.0])
    """
    shown, d = log.shown_index, log.dimension
    payoffs = log.payoff if log.exact is None else log.exact.payoff
    users: Any = log.users if log.exact is None else log.exact.users
    counts = np.bincount(shown, minlength=len(log.article_ids))
    present = np.flatnonzero(counts)
    order, ends = np.argsort(shown, kind="stable"), np.cumsum(counts)
    S, b = np.zeros((len(present), d, d)), np.zeros((len(present), d))
    totals = np.zeros(3)
    for place, a in enumerate(present):
        rows = order[ends[a] - counts[a] : ends[a]]
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            x = dense_rows(take_contexts(users, part), 0, len(part)).astype(np.float64)
            r = payoffs[part].astype(np.float64)
            w = np.ones(len(part)) if weights is None else weights[part]
            weighted = x * w[:, np.newaxis]  # (events, d)
            S[place] += x.T @ weighted
            b[place] += weighted.T @ r
            totals += (w.sum(), w @ r, w @ (r * r))
    features = np.ones((len(present), 1)) if log.features is None else log.features[present]
    return ArticleSums(
        tuple(log.article_ids[a] for a in present),
        *(S, b, np.asarray(features, np.float64)),
        trials=float(totals[0]),
        payoff=float(totals[1]),
        squares=float(totals[2]),
    )
