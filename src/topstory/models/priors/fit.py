"""Learns a prior from an earlier log."""

from __future__ import annotations

from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from topstory.events import EventLog
from topstory.events.log import check_log
from topstory.kernels.compilation import Floats
from topstory.kernels.contexts import leanings, scratch
from topstory.models.contexts import kernel_rows
from topstory.models.priors.cells import beta_prior, normal_prior
from topstory.models.priors.evidence import (
    WEIGHTS,
    Collapsed,
    collapse_sums,
    log_evidence,
    shared_evidence,
)
from topstory.models.priors.pooled import MAX_PRECISION, MIN_PRECISION, pool_articles
from topstory.models.priors.prior import Prior
from topstory.models.priors.sums import ArticleSums, sum_articles

MIN_ARTICLES = 2
MAX_SHARED = 2_000  # of d·m: hybrid's matrices would have more than 4 million numbers
SHARED_RIDGES = (1.0, 10.0, 100.0, 1_000.0)


def fit_prior(log: EventLog) -> Prior:
    """Learn from an earlier log where a policy should start.

    What the articles of that log have in common is where new ones start, instead of at a payoff of
    0 with the paper's ridge of 1. It pays most where each article has little data.

    - disjoint: mean and covariance of the articles' coefficients (empirical Bayes, by EM).
    - hybrid: what the log teaches about the shared coefficients; the ridge of an article's own part
      is the likeliest one (evidence).
    - context-free and segmented: mean and weight of the articles' click rates (a beta
      distribution), for all users and for each segment.

    Tastes change, so a linear model uses the part κ of it that fits what it sees (`Prior.weight`
    at first). It weighs that anew as trials come in, so a prior that is wrong loses its weight.

    Args:
        log: earlier events, best of random exploration, with the same contexts and features.

    >>> import topstory as ts
    >>> world = ts.TodayModule(seed=1, users=10_000)
    >>> prior = fit_prior(world.random_log(events=20_000))
    >>> prior.dimension, prior.features, prior.articles > 20
    (6, 6, True)
    >>> policy = ts.policy("linucb-hybrid", alpha=0.2, prior=prior)
    """
    check_log(log)
    if not len(log):
        raise ValueError("a prior is fitted on events, and the log has none")
    sums = sum_articles(log)
    if len(sums.ids) < MIN_ARTICLES:
        raise ValueError(
            f"a prior is what articles have in common, and the log shows {len(sums.ids)}; give a "
            "log with more"
        )
    mean, precision, noise = pool_articles(sums)
    event = log.event_features
    shares = (log.dimension - event) * (sums.features.shape[1] + event) <= MAX_SHARED
    crossed = sum_articles(log, event_features=event) if shares and event else sums
    ridge, shared_ridge = likeliest_ridges(crossed) if shares else (100.0, 1.0)
    found = collapse_sums(crossed, ridge) if shares else None
    return Prior(
        mean=mean,
        precision=precision,
        ridge=ridge,
        shared_ridge=shared_ridge,
        A0=np.zeros((0, 0)) if found is None else found.A,
        b0=np.zeros(0) if found is None else found.b,
        averages=_averages(log, noise),
        noise=noise,
        weight=_weight_that_held(log) if shares else 1.0,
        events=len(log),
        articles=len(sums.ids),
        feature_model=log.feature_model,
        event_features=event,
    )


def likeliest_ridges(
    sums: ArticleSums, shared_ridges: tuple[float, ...] = SHARED_RIDGES, tolerance: float = 0.02
) -> tuple[float, float]:
    """Hybrid's ridge and shared ridge: those at which the payoffs are likeliest."""
    from scipy.optimize import minimize_scalar  # slow to import, and only this needs it

    def best(shared_ridge: float) -> tuple[float, float]:
        def misfit(at: float) -> float:
            found = collapse_sums(sums, exp(at))
            return -_evidence(sums, found, shared_ridge * np.eye(len(found.b)), 0.0 * found.b)

        searched = minimize_scalar(
            misfit,
            bounds=(log(MIN_PRECISION), log(MAX_PRECISION)),
            method="bounded",
            options={"xatol": tolerance},
        )
        return float(searched.fun), exp(float(searched.x))

    tried = {shared_ridge: best(shared_ridge) for shared_ridge in shared_ridges}
    shared_ridge = min(tried, key=lambda each: tried[each][0])
    return tried[shared_ridge][1], shared_ridge


def _evidence(sums: ArticleSums, found: Collapsed, prior_A: Floats, prior_b: Floats) -> float:
    gain, fitted = shared_evidence(found.A, found.b, prior_A, prior_b)
    rest = sums.squares - found.explained - fitted
    return log_evidence(found.gain + gain, rest, sums.trials)


def _weight_that_held(log: EventLog) -> float:
    """κ: the weight of what the first half taught at which the second half is likeliest."""
    half = len(log) // 2
    if not half:
        return 1.0
    first, second = (
        sum_articles(part, event_features=log.event_features) for part in (log[:half], log[half:])
    )
    if len(first.ids) < MIN_ARTICLES:
        return 1.0
    ridge, shared_ridge = likeliest_ridges(first)
    taught, seen = collapse_sums(first, ridge), collapse_sums(second, ridge)
    start = shared_ridge * np.eye(len(taught.b))
    best, likeliest = 0.0, -inf
    for weight in WEIGHTS:
        value = _evidence(second, seen, start + weight * taught.A, weight * taught.b)
        if value > likeliest:
            best, likeliest = weight, value
    return best


def _averages(log: EventLog, noise: float) -> Floats:
    """(1 + segments, 2) mean and weight: of all users, then of those who lean to each feature."""
    binary = bool(((log.payoff == 0) | (log.payoff == 1)).all())

    def prior(shows: Floats, payoff: Floats) -> tuple[float, float]:
        seen = shows > 0
        if binary:
            return beta_prior(shows[seen], payoff[seen])
        return normal_prior(shows[seen], payoff[seen], noise)

    def of(kept: NDArray[np.bool_]) -> tuple[float, float] | None:
        shown, paid = log.shown_index[kept], log.payoff[kept]
        shows = np.bincount(shown, minlength=len(log.article_ids)).astype(np.float64)
        payoff = np.bincount(shown, paid, len(log.article_ids)).astype(np.float64)
        return prior(shows, payoff) if (shows > 0).sum() >= MIN_ARTICLES else None

    leans = np.zeros(len(log), np.int32)
    if log.dimension > 1:
        leanings(kernel_rows(log.users), scratch(log.dimension), 0, leans)
    overall = of(leans >= 0)
    segments = [of(leans == segment) for segment in range(max(1, log.dimension - 1))]
    return np.array([overall, *(each or overall for each in segments)], np.float64)
