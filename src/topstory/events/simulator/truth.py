"""Ceilings: the best CTR that each kind of model can reach, without noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import Floats
from topstory.events.simulator.window import WorldWindow


@dataclass(frozen=True)
class Ceilings:
    """True CTRs over a window; all but `random` as multiples of it, as Table 1 has them."""

    random: float  # CTR of articles shown at random
    omniscient: float  # each article's CTR over the whole window, in hindsight
    context_free: float  # each article's CTR in each hour
    segmented: float  # each article's CTR in each hour and segment: the largest entry of a context
    shared: float  # one ridge-less regression on z, nothing of an article's own
    disjoint: float  # a regression on x for each article
    oracle: float  # the best article for each user in each hour


def ceilings(
    window: WorldWindow,
    groups: npt.NDArray[np.float32],
    contexts: npt.NDArray[np.float32],
    features: Floats | None,
) -> Ceilings:
    """Of users drawn as often as they visit, given by groups (n, GROUPS) and contexts (n, d).

    Hours count by their visits. The linear models are fitted by least squares to the true
    probabilities themselves, each article's over its life.
    """
    x = contexts.astype(np.float64)
    hours = [window.chances(hour, groups) for hour in range(window.hours)]  # (n, K) each
    weights = np.diff(window.share)
    articles, d = len(window.articles), x.shape[1]

    seen, earned = np.zeros(articles), np.zeros(articles)
    gain = np.zeros((articles, d))  # Σ over hours of weight · Xᵀ chances
    for weight, chances, pool in _each(window, weights, hours):
        seen[pool] += weight
        earned[pool] += weight * chances.mean(axis=0)
        gain[pool] += weight * (x.T @ chances).T
    overall = earned / np.maximum(seen, 1e-300)
    gram = np.linalg.pinv(x.T @ x)
    theta = gain @ gram / np.maximum(seen, 1e-300)[:, None]  # (A, d)
    shared = theta if features is None else _shared(gain, seen, x.T @ x, features)

    segment = contexts[:, :-1].argmax(axis=1) if d > 1 else np.zeros(len(x), np.intp)
    totals = dict.fromkeys([field.name for field in fields(Ceilings)], 0.0)
    rows = np.arange(len(x))
    for weight, chances, pool in _each(window, weights, hours):
        by_segment = np.zeros_like(chances)
        for s in np.unique(segment):
            by_segment[segment == s] = chances[segment == s].mean(axis=0)
        shown = {
            "omniscient": np.full(len(x), overall[pool].argmax()),
            "context_free": np.full(len(x), chances.mean(axis=0).argmax()),
            "segmented": by_segment.argmax(axis=1),
            "shared": (x @ shared[pool].T).argmax(axis=1),
            "disjoint": (x @ theta[pool].T).argmax(axis=1),
            "oracle": chances.argmax(axis=1),
        }
        totals["random"] += float(weight * chances.mean())
        for name, choice in shown.items():
            totals[name] += float(weight * chances[rows, choice].mean())
    random = totals.pop("random")
    return Ceilings(random, **{name: total / random for name, total in totals.items()})


def _each(
    window: WorldWindow, weights: Floats, hours: list[Floats]
) -> Iterator[tuple[float, Floats, npt.NDArray[np.int32]]]:
    """Of each hour: its share of the visits, the users' chances, and its pool."""
    for hour, (weight, chances) in enumerate(zip(weights, hours, strict=True)):
        yield weight, chances, window.members[window.offsets[hour] : window.offsets[hour + 1]]


def _shared(gain: Floats, seen: Floats, gram: Floats, features: Floats) -> Floats:
    """(A, d) each article's coefficients of x, if those of z = x ⊗ f are shared by all."""
    m = features.shape[1]
    outer = np.einsum("a,ai,aj->ij", seen, features, features)
    products = np.einsum("ad,am->dm", gain, features).ravel()
    beta = np.linalg.pinv(np.kron(gram, outer)) @ products
    coefficients: Floats = features @ beta.reshape(-1, m).T
    return coefficients
