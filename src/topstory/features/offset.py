"""The warm policies' offset by the bilinear logistic regression on z (paper, §5.3 II)."""

from __future__ import annotations

import numpy as np

from topstory.events import EventLog
from topstory.events.contexts import SparseContexts
from topstory.features.bilinear import BilinearLogistic
from topstory.models.offset import LinearOffset


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
