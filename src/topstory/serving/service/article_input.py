"""What an editor says of an article, checked."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from topstory.serving.api.errors import Refused
from topstory.serving.api.messages import ArticleRequest
from topstory.serving.config.feature_model import FeatureModel
from topstory.serving.journal.records import ArticleFacts
from topstory.serving.journal.times import microseconds


def facts_of(
    article: str, said: ArticleRequest, model: FeatureModel | None, limit: float
) -> ArticleFacts:
    """The article as the journal keeps it; else it is refused.

    >>> facts_of("rain", ArticleRequest(features=(0.5, 1.0), title="Rain"), None, 1000.0).features
    (0.5, 1.0)
    """
    features = said.features
    if said.profile is not None:
        if features is not None:
            raise Refused(422, "bad_article", "give features or a profile, not both")
        features = _built(said.profile, model)
    if features is not None and not all(-limit <= value <= limit for value in features):
        raise Refused(422, "bad_article", f"an article's features are from {-limit} to {limit}")
    begins = _time("from", said.begins)
    ends = _time("until", said.ends)
    if begins is not None and ends is not None and begins >= ends:
        raise Refused(422, "bad_article", "`from` must come before `until`")
    return ArticleFacts(article, features, said.title, said.link, begins, ends)


def _time(field: str, when: datetime | None) -> int | None:
    if when is None:
        return None
    try:
        return microseconds(when.astimezone(UTC))
    except OverflowError:
        told = f"`{field}` must be in the years 1 to 9999 in UTC, got {when.isoformat()}"
        raise Refused(422, "bad_article", told) from None


def _built(profile: dict[str, object], model: FeatureModel | None) -> tuple[float, ...]:
    if model is None:
        raise Refused(422, "no_feature_model", "raw profiles need a feature model: set `features`")
    try:
        return tuple(np.asarray(model.article(profile), np.float64).tolist())
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(422, "bad_profile", f"the profile cannot be used: {error}") from None
