"""What a site sees of users and articles: raw profiles, features made of them, or the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.profiles import MANY, as_profiles
from topstory.events.simulator.newsroom import Article
from topstory.events.simulator.population import Population
from topstory.events.simulator.window import Window


class Features(Protocol):
    """Makes contexts of raw profiles, as a fitted `FeatureBuilder` does."""

    def users(self, profiles: pa.Table, /) -> npt.NDArray[Any]:
        """(V, d)."""

    def articles(self, profiles: pa.Table, /) -> npt.NDArray[Any]:
        """(A, m)."""


@dataclass(frozen=True, eq=False)
class Sight:
    """Contexts of all users, and how the articles of a window appear."""

    contexts: npt.NDArray[np.float32]  # (V, d)
    profiles: pa.Table | None  # of the users, if they are to be in the log
    features: Features | None
    true: bool  # the contexts are the users' groups, and the articles' features their topics

    def articles(self, window: Window) -> ArticleTable:
        """The window's articles as a log has them."""
        profiles = article_profiles(window.articles)
        features = None
        if self.features is not None:
            features = np.asarray(self.features.articles(profiles), np.float64)
        elif self.true:
            features = np.column_stack((window.topics, np.ones(len(window.articles))))
        return ArticleTable(window.ids, features, None if self.profiles is None else profiles)


def look(people: Population, raw: bool, features: Features | None) -> Sight:
    """Through `features`; else with `raw` at the constant alone; else at the true groups."""
    if features is not None:
        contexts = np.asarray(features.users(people.profiles), np.float32)
        if contexts.ndim != 2 or len(contexts) != people.settings.users:
            raise ValueError(
                f"features.users must give a row for each of the {people.settings.users} users, "
                f"got shape {contexts.shape}"
            )
    else:
        constant = np.ones((people.settings.users, 1), np.float32)
        contexts = constant if raw else np.column_stack((people.groups, constant))
    contexts.flags.writeable = False
    profiles = as_profiles("profiles", people.profiles) if raw else None
    return Sight(contexts, profiles, features, true=features is None and not raw)


def article_profiles(articles: Sequence[Article]) -> pa.Table:
    """What the newsroom tells of its articles: one row each."""
    return pa.table(
        {
            "url_categories": pa.array([list(a.url_categories) for a in articles], MANY),
            "editor_categories": pa.array([list(a.editor_categories) for a in articles], MANY),
        }
    )
