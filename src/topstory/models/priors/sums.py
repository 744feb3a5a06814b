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
    # Hybrid's, beyond that: what removed articles leave in A0 and b0; and, of trials in which z was
    # not x ⊗ f for the features f above, what they add to Σzzᵀ and Σrz beside their x ⊗ f.
    A0: Floats | None = None
    b0: Floats | None = None
    crossed: Floats | None = None  # (articles, d, dm) the same of B = Σxzᵀ; None: 0 for all
    reach: Floats | None = None  # (articles,) the largest |f|² of a trial; None: |f|²

    def plus(self, other: ArticleSums) -> ArticleSums:
        """The sums over both, with the features that `other` has for an article of both."""
        ids = tuple(dict.fromkeys((*self.ids, *other.ids)))
        place = {article: i for i, article in enumerate(ids)}
        features = np.zeros((len(ids), self.features.shape[1]))
        for each in (self, other):
            features[[place[article] for article in each.ids]] = each.features
        ours = self.as_of(features[[place[article] for article in self.ids]])

        def added(name: str) -> Floats | None:
            kept = [(part.ids, getattr(part, name)) for part in (ours, other)]
            known = [rows for _, rows in kept if rows is not None]
            if not known:
                return None
            whole = np.zeros((len(ids), *known[0].shape[1:]))
            for names, rows in kept:
                if rows is not None:
                    whole[[place[article] for article in names]] += rows
            return whole

        S, b = added("S"), added("b")
        assert S is not None
        assert b is not None
        return replace(
            self,
            ids=ids,
            S=S,
            b=b,
            features=features,
            trials=self.trials + other.trials,
            payoff=self.payoff + other.payoff,
            squares=self.squares + other.squares,
            A0=_sum(ours.A0, other.A0),
            b0=_sum(ours.b0, other.b0),
            crossed=added("crossed"),
            reach=_farthest(place, features, (ours, other)),
        )

    def as_of(self, features: Floats) -> ArticleSums:
        """The same trials, beside other features of the articles: those that they have now."""
        changed = np.flatnonzero((features != self.features).any(axis=1))
        changed = changed[[bool(self.S[a].any() or self.b[a].any()) for a in changed]]
        if not len(changed):
            return replace(self, features=features)
        d, m = self.b.shape[1], features.shape[1]
        old, new, S, b = (each[changed] for each in (self.features, features, self.S, self.b))
        crossed = np.zeros((len(S), d, d * m)) if self.crossed is None else self.crossed[changed]
        whole = np.zeros((len(self.ids), d, d * m)) if self.crossed is None else self.crossed.copy()
        whole[changed] = crossed + np.einsum("aij,ak->aijk", S, old - new).reshape(crossed.shape)
        pairs = np.einsum("aj,ak->ajk", old, old) - np.einsum("aj,ak->ajk", new, new)
        squares = np.einsum("aij,akl->ikjl", S, pairs).reshape(d * m, d * m)
        reach = np.einsum("am,am->a", self.features, self.features)
        return replace(
            self,
            features=features,
            A0=_sum(self.A0, (squares + squares.T) / 2),
            b0=_sum(self.b0, np.einsum("ai,ak->ik", b, old - new).reshape(d * m)),
            crossed=whole,
            reach=reach if self.reach is None else self.reach,
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
            crossed=None if self.crossed is None else factor * self.crossed,
        )


def _sum(one: Floats | None, two: Floats | None) -> Floats | None:
    if one is None or two is None:
        return two if one is None else one
    return one + two


def _farthest(
    place: dict[str, int], features: Floats, parts: tuple[ArticleSums, ...]
) -> Floats | None:
    """(articles,) the largest |f|² in any of the parts."""
    if all(part.reach is None for part in parts):
        return None
    farthest: Floats = np.einsum("am,am->a", features, features)
    for part in parts:
        if part.reach is not None:
            rows = [place[article] for article in part.ids]
            farthest[rows] = np.maximum(farthest[rows], part.reach)
    return farthest


def sum_articles(
    log: EventLog, weights: Floats | None = None, event_features: int = 0
) -> ArticleSums:
    """The sums of a log's articles, of those that were shown.

    Args:
        log: what happened.
        weights: (n,) how often each event counts; None: once.
        event_features: how many numbers of a context, before the constant, are features of the
            article.

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
    features = np.ones((len(present), 1)) if log.features is None else log.features[present]
    features, d = np.asarray(features, np.float64), d - event_features
    S, b = np.zeros((len(present), d, d)), np.zeros((len(present), d))
    varying = None if not event_features else VaryingSums(features, d, event_features)
    totals = np.zeros(3)
    for place, a in enumerate(present):
        rows = order[ends[a] - counts[a] : ends[a]]
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            x = dense_rows(take_contexts(users, part), 0, len(part)).astype(np.float64)
            r = payoffs[part].astype(np.float64)
            w = np.ones(len(part)) if weights is None else weights[part]
            if varying is not None:
                x, e = np.delete(x, np.s_[d - 1 : -1], axis=1), x[:, d - 1 : -1]
                varying.add(place, x, e, r, w)
            weighted = x * w[:, np.newaxis]  # (events, d)
            S[place] += x.T @ weighted
            b[place] += weighted.T @ r
            totals += (w.sum(), w @ r, w @ (r * r))
    found = ArticleSums(
        tuple(log.article_ids[a] for a in present),
        *(S, b, features),
        trials=float(totals[0]),
        payoff=float(totals[1]),
        squares=float(totals[2]),
    )
    return found if varying is None else varying.beside(found)


class VaryingSums:
    """What trials add whose z is x ⊗ (f, e), with numbers e of the event."""

    def __init__(self, features: Floats, d: int, event: int) -> None:
        m = features.shape[1]
        self._features, self._m = features, m
        self._squares = np.zeros((d, m + event, d, m + event))  # Σ zzᵀ beside the x ⊗ f
        self._payoffs = np.zeros((d, m + event))
        self._crossed = np.zeros((len(features), d, d, m + event))
        self._reach = np.einsum("am,am->a", features, features)

    def add(self, place: int, x: Floats, e: Floats, r: Floats, w: Floats) -> None:
        """Trials of the article in this place, which count `w` times."""
        (n, d), q, m, f = x.shape, e.shape[1], self._m, self._features[place]
        both = (x[:, :, np.newaxis] * e[:, np.newaxis, :]).reshape(n, d * q)
        weighted = w[:, np.newaxis] * both
        products = (x.T @ weighted).reshape(d, d, q)
        self._crossed[place, :, :, m:] += products
        mixed = np.einsum("ijl,k->ikjl", products, f)
        self._squares[:, :m, :, m:] += mixed
        self._squares[:, m:, :, :m] += mixed.transpose(2, 3, 0, 1)
        self._squares[:, m:, :, m:] += (both.T @ weighted).reshape(d, q, d, q)
        self._payoffs[:, m:] += (r @ weighted).reshape(d, q)
        farthest = float(f @ f) + float((e * e).sum(axis=1).max(initial=0.0))
        self._reach[place] = max(self._reach[place], farthest)

    def beside(self, sums: ArticleSums) -> ArticleSums:
        """The sums, with these."""
        d, m = self._payoffs.shape
        return replace(
            sums,
            features=np.hstack([sums.features, np.zeros((len(sums.ids), m - self._m))]),
            A0=self._squares.reshape(d * m, d * m),
            b0=self._payoffs.reshape(d * m),
            crossed=self._crossed.reshape(len(sums.ids), d, d * m),
            reach=self._reach,
        )
