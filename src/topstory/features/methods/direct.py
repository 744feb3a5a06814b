"""The profile itself: one-hot categories and scaled numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from topstory.features.clustering.fitted_side import FittedSide
from topstory.features.clustering.memberships import MembershipMap
from topstory.features.encoding.encoder import Threshold
from topstory.features.fields.profile_encoder import SCALED, ProfileEncoder
from topstory.features.methods.method import Fitted, RawProfiles, Regress, Settings

SUPPORT = 0.01  # rarer categories share a column
MAX_NUMBERS = 100  # of a context: a linear model of an article has as many squared


def fit(settings: Settings, raw: RawProfiles, regress: Regress) -> Fitted:
    """A number for each category and each number of a profile; nothing is learned from clicks.

    For small profiles. Any payoff will do, and the log need not be one of random exploration.
    """
    support = SUPPORT if settings.support is None else settings.support
    users = _side(settings, raw.users, support, "user", "--support")
    if raw.articles is None:
        return Fitted(users, None)
    floor = settings.article_support
    articles = _side(settings, raw.articles, floor, "article", "--article-support")
    return Fitted(users, articles)


def _side(settings: Settings, table: Any, support: Threshold, who: str, option: str) -> FittedSide:
    encoder = ProfileEncoder(
        support, settings.numbers or SCALED, text=settings.text, seed=settings.seed
    ).fit(table)
    size = encoder.n_features_out_ - 1
    if size > MAX_NUMBERS:
        widest = sorted(encoder.fields_, key=lambda field: -len(field.columns))[:3]
        listed = ", ".join(f"{field.name}: {len(field.columns)}" for field in widest)
        raise ValueError(
            f"direct makes {size} numbers of a {who}'s profile ({listed}), and at most "
            f"{MAX_NUMBERS}: keep fewer categories ({option}), or let pca or clusters compress it"
        )
    return FittedSide(encoder, MembershipMap(np.eye(size + 1, size), np.zeros(size), 0))
