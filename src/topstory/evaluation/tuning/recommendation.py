"""Which parameter to run with, from all tuning curves together.

The largest point of a noisy curve is mostly luck. A curve is smooth, and curves of other data sizes
and of other policies with the same explorer look much like it: so all of them are read together.
The logarithm of a CTR is taken to be

    level of (policy, size) + expected curve + common + by size + by policy + by both + noise

where the expected curve peaks at values that are good by default, and each of the other four parts
is a smooth random function of the logarithms of ε or α and of the ridge, with a standard deviation
that is a constant below. (An α counts on the scale of payoffs: 10 among payoffs of 20 as 0.5 among
clicks.) The noise is read from how far points are off their neighbours. Given the
points, the best estimate of each curve is a weighted mean (a Gaussian process, or kriging): with
little data it is the expected curve, with much it is the points themselves.

The constants were fitted to simulated worlds other than those that tests and benchmarks judge by
(`python -m benchmarks claims`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topstory.kernels.compilation import Floats
from topstory.policies.registry import REGISTRY

Mask = npt.NDArray[np.bool_]

PAPER_RIDGE = 1.0  # of a linear model whose parameters name none
# Of one that starts from a prior, its own; it is known only once the prior is, and about this.
OWN_RIDGE = 1000.0
# Where the expected curve peaks, and what it loses at e times less and at e times more.
DEFAULTS = {"alpha": 0.5, "epsilon": 0.3, "ridge": 3.0, "shared ridge": 100.0}
FALLS = {
    "alpha": (0.04, 0.02),
    "epsilon": (0.02, 0.02),
    "ridge": (0.005, 0.005),  # of a model whose articles share nothing
    "shared ridge": (0.003, 0.003),  # of one whose articles share what they learn
}
FLAT = (0.0, 0.0)  # of a parameter about which nothing is known beforehand
LENGTH = {"ridge": 3.0, "size": 1.5}  # in logarithms
TUNED_LENGTH = 1.2  # of ε, α and the like
# Standard deviations of the random parts, for ε or α and for the ridge.
PARTS = {"common": 0.02, "size": 0.02, "policy": 0.02, "both": 0.01}
RIDGE_PARTS = {"common": 0.01, "size": 0.01, "policy": 0.01, "both": 0.004}
BELIEVED = 10  # the variance that points came with counts as so many points between two others
UNKNOWN_VARIANCE = 0.01  # of the logarithm of a CTR about which nothing is known
TIE = 0.003  # of CTR: less than this is no reason to prefer a value


@dataclass(frozen=True)
class TriedPoint:
    """A point of a tuning curve: what one policy earned with some parameters."""

    policy: str
    size: float
    parameters: Mapping[str, float]
    value: float  # what is to be as high as possible: a relative CTR, or a total; nan: unknown
    variance: float  # of its logarithm
    learning: float  # the relative CTR while learning, which decides between equal values


@dataclass(frozen=True)
class Recommendation:
    """The parameters to run one policy with at one data size."""

    parameters: Mapping[str, float]
    value: float  # what they are expected to earn, read from all curves; nan if nothing is known
    at_edge: tuple[str, ...]  # parameters at the edge of what was tried: other values may be better


def recommend(
    points: Sequence[TriedPoint], scale: float = 1.0
) -> dict[tuple[str, float], Recommendation]:
    """The parameters for every policy and size, read from all points together.

    `scale`: how large payoffs are beside clicks (`topstory.evaluation.tuning.grids.payoff_scale`).

    >>> def tried(alpha, value):
    ...     return TriedPoint("ucb", 1.0, {"alpha": alpha}, value, 0.05**2, value)
    >>> found = recommend([tried(0.1, 1.46), tried(0.2, 1.51), tried(0.4, 1.50), tried(1.0, 1.52)])
    >>> found["ucb", 1.0].parameters
    {'alpha': 0.4}
    >>> found = recommend([tried(2, 1.46), tried(4, 1.51), tried(8, 1.50), tried(20, 1.52)], 20.0)
    >>> found["ucb", 1.0].parameters
    {'alpha': 8}
    """
    found: dict[tuple[str, float], Recommendation] = {}
    for name in dict.fromkeys(map(_tuned, points)):
        family = [point for point in points if _tuned(point) == name]
        values = _pooled(family, name, [point.value for point in family], scale)
        learning = _pooled(family, name, [point.learning for point in family], scale)
        for cell in dict.fromkeys((point.policy, point.size) for point in family):
            own = [i for i, p in enumerate(family) if (p.policy, p.size) == cell]
            best = max(values[i] for i in own)
            tied = [i for i in own if values[i] >= best - TIE]
            chosen = max(tied, key=lambda i: learning[i])
            known = any(math.isfinite(family[i].value) for i in own)
            found[cell] = Recommendation(
                parameters=dict(family[chosen].parameters),
                value=math.exp(values[chosen]) if known else math.nan,
                at_edge=_edges(family[chosen], [family[i] for i in own]),
            )
    return {key: found[key] for key in dict.fromkeys((p.policy, p.size) for p in points)}


def _tuned(point: TriedPoint) -> str:
    tuned = REGISTRY[point.policy].tuned
    assert tuned is not None
    return tuned.name


def _edges(chosen: TriedPoint, tried: Sequence[TriedPoint]) -> tuple[str, ...]:
    """Parameters of which nothing lower, or nothing higher, was tried; a ridge may be left out."""
    found = []
    for name in dict.fromkeys(name for point in tried for name in point.parameters):
        if name == "ridge" and REGISTRY[chosen.policy].from_prior:
            continue  # the prior has one of its own, which is no edge
        values = [point.parameters.get(name, PAPER_RIDGE) for point in tried]
        value = chosen.parameters.get(name, PAPER_RIDGE)
        if len(set(values)) > 1 and value in (min(values), max(values)):
            found.append(name)
    return tuple(found)


def _pooled(
    points: Sequence[TriedPoint], name: str, measured: Sequence[float], scale: float
) -> Floats:
    """(n,) the curves at their points, as all points together have them: logarithms."""
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(np.asarray(measured, float))
    known = np.isfinite(logs)
    entries = [REGISTRY[point.policy] for point in points]
    units = [1.0 if entry.tuned is None else scale**entry.tuned.scales for entry in entries]
    x = np.log(
        [max(p.parameters[name] / unit, 1e-4) for p, unit in zip(points, units, strict=True)]
    )
    has_ridge = np.array(["ridge" in entry.model_parameters for entry in entries])
    from_prior = np.array([entry.from_prior for entry in entries])
    named_none = np.where(from_prior, OWN_RIDGE, PAPER_RIDGE)
    ridge = np.log(
        [p.parameters.get("ridge", none) for p, none in zip(points, named_none, strict=True)]
    )
    size = np.log([point.size for point in points])
    policies = list(dict.fromkeys(point.policy for point in points))
    policy = np.array([policies.index(point.policy) for point in points])
    shares = np.array([REGISTRY[point.policy].model.article_features for point in points])
    expected = _falling(x, name) + np.where(
        has_ridge & ~from_prior,  # beside a prior, nothing is known of a ridge beforehand
        np.where(shares, _falling(ridge, "shared ridge"), _falling(ridge, "ridge")),
        0.0,
    )
    if not known.any():
        return np.asarray(expected)

    same_policy = (policy[:, None] == policy).astype(float)
    near_size, near_x = _near(size, LENGTH["size"]), _near(x, TUNED_LENGTH)
    curves = near_x * _parts(PARTS, same_policy, near_size)
    near_ridge = _near(ridge, LENGTH["ridge"]) * np.outer(has_ridge, has_ridge)
    near_ridge *= from_prior[:, None] == from_prior
    curves += near_ridge * near_x * _parts(RIDGE_PARTS, same_policy, near_size)
    # Each policy and size has a level of its own, about which nothing is known beforehand.
    levels = same_policy * (size[:, None] == size)
    centre = logs[known].mean()
    prior = curves + 10.0 * levels
    seen = prior[np.ix_(known, known)] + np.diag(_noise(points, logs, x, ridge, known)[known])
    surprise = logs[known] - centre - expected[known]
    return np.asarray(centre + expected + prior[:, known] @ np.linalg.solve(seen, surprise))


def _falling(x: Floats, name: str) -> Floats:
    """The expected curve: a parabola from its peak, to each side."""
    below, above = FALLS.get(name, FLAT)
    apart = x - math.log(DEFAULTS.get(name, 1.0))
    return np.asarray(-np.where(apart < 0, below, above) * apart**2)


def _near(places: Floats, length: float) -> Floats:
    """1 at the same place, less with distance."""
    return np.asarray(np.exp(-0.5 * ((places[:, None] - places) / length) ** 2))


def _parts(sd: Mapping[str, float], same_policy: Floats, near_size: Floats) -> Floats:
    """(n, n) how much of its random parts two curves have in common."""
    return np.asarray(
        sd["common"] ** 2
        + sd["size"] ** 2 * near_size
        + sd["policy"] ** 2 * same_policy
        + sd["both"] ** 2 * same_policy * near_size
    )


def _noise(
    points: Sequence[TriedPoint], logs: Floats, x: Floats, ridge: Floats, known: Mask
) -> Floats:
    """(n,) the variance of each point about its curve: the same for all points of a size.

    A curve is nearly straight between neighbours, so how far points are from the line through their
    neighbours says how noisy they are, the luck of the learning path included. Where few have
    neighbours, it is rather the variance that they came with.
    """
    found = np.full(len(points), np.nan)
    for size in {point.size for point in points}:
        here = [i for i, point in enumerate(points) if point.size == size and known[i]]
        curves: dict[tuple[str, float], list[int]] = {}
        for i in sorted(here, key=lambda i: x[i]):
            curves.setdefault((points[i].policy, float(ridge[i])), []).append(i)
        apart = [
            _from_line(x[list(three)], logs[list(three)])
            for curve in curves.values()
            for three in zip(curve, curve[1:], curve[2:], strict=False)
        ]
        given = [points[i].variance for i in here if math.isfinite(points[i].variance)]
        believed = float(np.mean(given)) if given else UNKNOWN_VARIANCE
        found[here] = (sum(apart) + BELIEVED * believed) / (len(apart) + BELIEVED)
    return np.asarray(np.maximum(found, 1e-8))


def _from_line(x: Floats, y: Floats) -> float:
    """The variance that the middle one of three points shows, by its distance from a line."""
    if x[2] - x[0] <= 0:
        return 0.0
    share = (x[1] - x[0]) / (x[2] - x[0])
    apart = y[1] - (1 - share) * y[0] - share * y[2]
    return float(apart**2 / (1 + share**2 + (1 - share) ** 2))
