"""How much a user is expected to like each topic."""

from __future__ import annotations

import numpy as np

from topstory.features.clustering.fitted_side import FittedSide
from topstory.features.methods.clusters import clustered
from topstory.features.methods.method import (
    Fitted,
    RawProfiles,
    Regress,
    Settings,
    linear_map,
    sampled,
)
from topstory.kernels.compilation import Floats


def fit(settings: Settings, raw: RawProfiles, regress: Regress) -> Fitted:
    """The regression's log-odds of a click on each cluster of articles, beside the average one.

    Articles are as with clusters: their memberships are the topics. Users keep all that the
    regression knows of them for these topics; clusters keep only which users they resemble.
    """
    encoded, model, found = clustered(settings, raw, regress)
    shown = model.shown_ > 0
    belongs = found.articles.membership_map.many(encoded.articles[shown])[:, :-1]
    topics: Floats = belongs.T @ encoded.articles[shown] / belongs.sum(axis=0)[:, None]  # (T, M)
    weights = model.coef_ @ (topics - topics.mean(axis=0)).T  # (D, T)
    users = sampled(encoded.users, settings.seed)
    side = FittedSide(encoded.user_encoder, linear_map(np.ascontiguousarray(weights), users))
    return Fitted(side, found.articles, model)
