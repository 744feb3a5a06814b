"""The warm policies' offset, by the bilinear logistic regression on z (paper, §5.3 II)."""

from __future__ import annotations

import numpy as np

from topstory.events import EventLog
from topstory.events.columns.contexts import SparseContexts
from topstory.models.offset import LinearOffset, fit_offset

BILINEAR, LEAST_SQUARES = "bilinear logistic regression", "least squares"


def offset_by(log: EventLog) -> str:
    """The method by which the warm policies' offset can be fitted on a log.

    The paper's bilinear logistic regression needs article features, dense contexts, and payoffs
    that are clicks. Least squares takes any log.
    """
    clicks = len(log) and log.payoff.min() >= 0 and log.payoff.max() <= 1 and 0 < log.ctr < 1
    dense = not isinstance(log.users, SparseContexts)
    return BILINEAR if log.features is not None and dense and clicks else LEAST_SQUARES


def fit_warm_offset(log: EventLog) -> LinearOffset:
    """The warm policies' offset from random exploration, by `offset_by(log)`.

    >>> log = EventLog.from_arrays([[1.0]] * 4, [["rain"]], [0] * 4, ["rain"] * 4, [0, 1, 0, 0])
    >>> offset_by(log)  # its article has no features
    'least squares'
    >>> fit_warm_offset(log).table(log.articles)
    {'rain': array([0.])}
    """
    return fit_bilinear_offset(log) if offset_by(log) == BILINEAR else fit_offset(log)


def fit_bilinear_offset(log: EventLog, ridge: float = 1.0, seed: int = 0) -> LinearOffset:
    """The user-specific adjustment of CTRs, from a log of random exploration with features.

    Click probability is σ(xᵀWf), fitted on z = x ⊗ f. Around the log's CTR p, log-odds that differ
    by o change a CTR by p(1 − p)·o: so the adjustment is p(1 − p)·(x − mean x)ᵀWf, which is 0 for
    the average user. `ts.fit_offset` is its twin by least squares.

    Args:
        log: events whose articles were shown at random, with article features.
        ridge: of the regression.
        seed: decides which events are held out.
    """
    # Imported here: least squares needs no extra.
    from topstory.features.regression.bilinear import BilinearLogistic

    if log.features is None:
        raise ValueError("the bilinear offset needs article features: apply a FeatureBuilder first")
    if isinstance(log.users, SparseContexts):
        raise ValueError("the bilinear offset needs dense contexts")
    if log.visitors is not None:
        contexts, visitor = log.visitors.contexts, log.visitors.number
    else:
        contexts, visitor = log.users, np.arange(len(log), dtype=np.int32)
    model = BilinearLogistic(ridge=ridge, seed=seed)
    model.fit_events(contexts, log.features, visitor, log.shown_index, log.payoff)
    W = log.ctr * (1.0 - log.ctr) * model.coef_  # (d, m)
    W[-1] -= log.users.mean(axis=0, dtype=np.float64) @ W  # the constant takes the mean away
    return LinearOffset(log.dimension, W, {})
