"""The prior of an average: where a new article's mean payoff starts, and with how many trials.

Clicks of an article are binomial, and articles' rates follow a Beta(s·m, s·(1 − m)): the mean m and
the weight s at which the clicks of all articles are likeliest. Other payoffs: the same with normal
distributions, where s = σ²/τ², the noise over how much articles differ.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, expit, logit

from topstory.kernels.compilation import Floats

MIN_PRIOR_TRIALS, MAX_PRIOR_TRIALS = 1.0, 1e5  # the weight of a prior


def beta_prior(shows: Floats, clicks: Floats) -> tuple[float, float]:
    """Mean and weight of a beta distribution of articles' click rates.

    >>> mean, weight = beta_prior(np.full(200, 1e4), np.tile([300.0, 500.0], 100))
    >>> round(mean, 3), 300 < weight < 500
    (0.04, True)
    """
    from scipy.optimize import minimize  # slow to import, and only this needs it

    total = shows.sum()
    rate = min(max(clicks.sum() / total, 0.5 / total), 1 - 0.5 / total)

    def misfit(at: Floats) -> float:
        mean, weight = expit(at[0]), np.exp(at[1])
        a, b = mean * weight, (1 - mean) * weight
        return -float(np.sum(betaln(a + clicks, b + shows - clicks) - betaln(a, b)))

    bounds = [
        (logit(rate) - 3, logit(rate) + 3),
        (np.log(MIN_PRIOR_TRIALS), np.log(MAX_PRIOR_TRIALS)),
    ]
    found = minimize(misfit, [logit(rate), np.log(100.0)], bounds=bounds, method="L-BFGS-B")
    return float(expit(found.x[0])), float(np.exp(found.x[1]))


def normal_prior(shows: Floats, payoff: Floats, noise: float) -> tuple[float, float]:
    """Mean and weight of a normal distribution of articles' mean payoffs.

    >>> mean, weight = normal_prior(np.full(200, 1e4), np.tile([0.0, 2e4], 100), noise=25.0)
    >>> round(mean, 3), round(weight)
    (1.0, 25)
    """
    means = payoff / shows

    def misfit(weight: float) -> tuple[float, float]:
        spread = noise / weight + noise / shows  # of an article's observed mean
        mean = float(np.sum(means / spread) / np.sum(1 / spread))
        return float(np.sum(np.log(spread) + (means - mean) ** 2 / spread)), mean

    weights = np.geomspace(MIN_PRIOR_TRIALS, MAX_PRIOR_TRIALS, 400)
    best = min(weights, key=lambda weight: misfit(weight)[0])
    return misfit(best)[1], float(best)
