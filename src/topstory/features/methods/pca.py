"""Principal components of the profile, which the paper's conclusion suggests (§5.5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from topstory.features.clustering.fitted_side import FittedSide
from topstory.features.clustering.memberships import MembershipMap
from topstory.features.methods.method import (
    AnyEncoder,
    Fitted,
    RawProfiles,
    Regress,
    Settings,
    article_encoder,
    linear_map,
    sampled,
    user_encoder,
)

COMPONENTS = 10


def fit(settings: Settings, raw: RawProfiles, regress: Regress) -> Fitted:
    """The directions in which profiles differ most; nothing is learned from clicks.

    Any payoff will do, and the log need not be one of random exploration.
    """
    users = _side(settings, user_encoder(settings, raw.users), raw.users)
    if raw.articles is None:
        return Fitted(users, None)
    articles = _side(settings, article_encoder(settings, raw.articles), raw.articles)
    return Fitted(users, articles)


def _side(settings: Settings, encoder: AnyEncoder, profiles: Any) -> FittedSide:
    raw = sampled(encoder.transform(profiles), settings.seed)
    rows, width = raw.shape
    size = min(settings.components or COMPONENTS, width - 1, rows - 1)
    if size < 1:
        return FittedSide(encoder, MembershipMap(np.zeros((width, 0)), np.zeros(0), 0))
    # Sparse as it is: PCA centres it without making it dense.
    solver = PCA(size, svd_solver="arpack" if size < min(rows, width - 1) else "covariance_eigh")
    solver.random_state = settings.seed
    with threadpool_limits(1):  # the same sums, in the same order, on any machine
        solver.fit(raw[:, :-1].astype(np.float64))
    weights = np.vstack([solver.components_.T, np.zeros(size)])  # the constant has none
    return FittedSide(encoder, linear_map(weights, raw))
