"""Contexts with the numbers of the event: the hour, an article's age, what a visitor saw before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.serving.config.feature_model import EventFeatures, FeatureModel, events_of
from topstory.serving.state.pool import Listing, Pool


class EventContexts:
    """Adds the numbers of an event to the context of a user.

    The same functions make them that made those of the log which the policy was trained on.
    """

    def __init__(self, declared: EventFeatures) -> None:
        self._declared = declared
        self.count = len(declared.columns)
        self.per_article = declared.per_article

    @classmethod
    def of(cls, model: FeatureModel | None) -> EventContexts | None:
        """None if the feature model has no features of events, or there is none."""
        declared = events_of(model)
        return None if declared is None else cls(declared)

    def contexts(self, users: Sequence[tuple[float, ...]], at: int) -> list[tuple[float, ...]]:
        """The users' contexts, with those numbers that are the same for all articles."""
        event = tuple(self._declared.of_event(at).astype(np.float64).tolist())
        rest = (0.0,) * self.per_article
        return [(*user[:-1], *event, *rest, user[-1]) for user in users]

    def numbers(
        self, pool: Pool, listing: Listing, at: int, visitor: bytes
    ) -> npt.NDArray[np.float32]:
        """(K, k) the numbers of each article that can be shown to this visitor."""
        facts = [pool.articles[article].facts for article in listing.ids]
        published = [
            each.begins or 0 if each.published is None else each.published for each in facts
        ]
        return numbers_of(self._declared, at, published, _seen(pool, listing, visitor))


def numbers_of(
    declared: EventFeatures, at: int, published: list[int], seen: list[int]
) -> npt.NDArray[np.float32]:
    """(K, k) for articles that came out then, and were seen so often."""
    found: npt.NDArray[np.float32] = declared.of_articles(at, published, seen)
    return found


def _seen(pool: Pool, listing: Listing, visitor: bytes) -> list[int]:
    counts: Any = {} if pool.seen is None or not visitor else pool.seen.counts(visitor)
    return [counts.get(article, 0) for article in listing.ids]
