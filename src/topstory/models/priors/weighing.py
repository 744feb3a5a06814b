"""How much of its prior a model uses: the share at which what it has seen is clearly likeliest.

A prior from an earlier log may be out of date. So a model weighs it anew when it has seen twice as
many trials as the last time: a function of the trials alone, so the same ones give the same weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log

import numpy as np

from topstory.kernels.compilation import Floats
from topstory.kernels.models.tally import (
    LENGTH,
    PAYOFF,
    SQUARES,
    TRIALS,
    UNTIL_CHECK,
    WEIGHT,
)
from topstory.models.priors.evidence import WEIGHTS, log_determinant, shared_evidence
from topstory.models.priors.prior import Prior
from topstory.models.priors.sums import ArticleSums

FIRST_CHECK = 64  # trials
NOISE_TRIALS = 100.0  # what the prior's own noise counts for
MAX_WORK = 5e7  # multiplications for one weight, about
# How much likelier the trials must be with less of the prior, before less is used: 20 times. A few
# clicks make any weight look a little likelier than another, and a right prior given up by chance
# costs a quarter of the clicks or more (`python -m benchmarks tempering`, 10 % of the data).
MIN_GAIN = log(20.0)


def new_tally(weight: float) -> Floats:
    """The tally of a model without trials."""
    tally = np.zeros(LENGTH)
    tally[[UNTIL_CHECK, WEIGHT]] = FIRST_CHECK, weight
    return tally


def tally_of(sums: ArticleSums, weight: float) -> Floats:
    """The tally of a model that has seen these trials."""
    tally = new_tally(weight)
    tally[[TRIALS, PAYOFF, SQUARES]] = sums.trials, sums.payoff, sums.squares
    tally[UNTIL_CHECK] = max(FIRST_CHECK, sums.trials)
    return tally


def noise(prior: Prior, sums: ArticleSums) -> float:
    """σ²: of the payoffs seen, and at first of the prior's log."""
    mean = sums.payoff / max(sums.trials, 1.0)
    left = max(sums.squares - sums.trials * mean * mean, 0.0)
    found = (NOISE_TRIALS * prior.noise + left) / (NOISE_TRIALS + sums.trials)
    return max(found, 1e-12)


def shared_weight(prior: Prior, A: Floats, b: Floats, variance: float) -> float:
    """κ of hybrid's shared part, given what the trials added to A0 and b0."""
    tried = (prior.weight, *(each for each in WEIGHTS if each < prior.weight))
    evidence = {}
    for weight in tried:
        gain, fitted = shared_evidence(A, b, *prior.shared(weight))
        evidence[weight] = gain + fitted / (2 * variance)
    return _clearly_likeliest(evidence)


def own_weight(prior: Prior, sums: ArticleSums, variance: float) -> float:
    """κ of a disjoint model's articles; if they are too many, by those with the most trials."""
    length = np.einsum("aii->a", sums.S)
    d = prior.dimension
    most = np.argsort(-length, kind="stable")[: max(1, int(MAX_WORK / d**3))]
    most = most[length[most] > 0]
    evidence = {}
    for weight in WEIGHTS:
        A, b = prior.own(weight)
        whole, right = sums.S[most] + A, sums.b[most] + b
        fitted = np.sum(right * np.linalg.solve(whole, right[..., np.newaxis])[..., 0])
        fitted -= len(most) * (b @ np.linalg.solve(A, b))
        gain = 0.5 * (len(most) * log_determinant(A) - log_determinant(whole))
        evidence[weight] = float(gain + fitted / (2 * variance))
    return _clearly_likeliest(evidence)


def _clearly_likeliest(evidence: Mapping[float, float]) -> float:
    """The weight with the most evidence, unless the first is nearly as likely.

    >>> _clearly_likeliest({1.0: -5.0, 0.3: -4.0}), _clearly_likeliest({1.0: -9.0, 0.3: -4.0})
    (1.0, 0.3)
    """
    first, likeliest = next(iter(evidence)), max(evidence, key=evidence.__getitem__)
    return likeliest if evidence[likeliest] > evidence[first] + MIN_GAIN else first
