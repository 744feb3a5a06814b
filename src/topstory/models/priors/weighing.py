"""How much of its prior a model uses: the share at which what it has seen is likeliest.

A prior from an earlier log may be out of date. So a model weighs it anew when it has seen twice as
many trials as the last time: a function of the trials alone, so the same ones give the same weight.
"""

from __future__ import annotations

from math import inf

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
    best, likeliest = prior.weight, -inf
    for weight in (prior.weight, *(each for each in WEIGHTS if each < prior.weight)):
        gain, fitted = shared_evidence(A, b, *prior.shared(weight))
        value = gain + fitted / (2 * variance)
        if value > likeliest:
            best, likeliest = weight, value
    return best


def own_weight(prior: Prior, sums: ArticleSums, variance: float) -> float:
    """κ of a disjoint model's articles; if they are too many, by those with the most trials."""
    length = np.einsum("aii->a", sums.S)
    d = prior.dimension
    most = np.argsort(-length, kind="stable")[: max(1, int(MAX_WORK / d**3))]
    most = most[length[most] > 0]
    best, likeliest = 1.0, -inf
    for weight in WEIGHTS:
        A, b = prior.own(weight)
        whole, right = sums.S[most] + A, sums.b[most] + b
        fitted = np.sum(right * np.linalg.solve(whole, right[..., np.newaxis])[..., 0])
        fitted -= len(most) * (b @ np.linalg.solve(A, b))
        gain = 0.5 * (len(most) * log_determinant(A) - log_determinant(whole))
        value = gain + fitted / (2 * variance)
        if value > likeliest:
            best, likeliest = weight, float(value)
    return best
