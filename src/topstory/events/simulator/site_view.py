"""What a site knows of users and articles: raw profiles, features, or the true groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.profiles import MANY_CATEGORIES, as_profiles
from topstory.events.simulator.newsroom import SimulatedArticle
from topstory.events.simulator.population import Population
from topstory.events.simulator.window import WorldWindow

HOUR = 3_600_000_000  # microseconds


class Features(Protocol):
    """Makes contexts from raw profiles, as a fitted `FeatureBuilder` does."""

    def users(self, profiles: pa.Table, /) -> npt.NDArray[Any]:
        """(V, d)."""

    def articles(self, profiles: pa.Table, /) -> npt.NDArray[Any]:
        """(A, m)."""


@dataclass(frozen=True, eq=False)
class SiteView:
    """The contexts of all users, and how articles are described."""

    contexts: npt.NDArray[np.float32]  # (V, d)
    profiles: pa.Table | None  # of the users, if the log is to have them
    features: Features | None
    true: bool  # the contexts are the users' groups, and the articles' features their topics
    dated: bool = False  # whether articles say when they were published

    def articles(self, window: WorldWindow) -> ArticleTable:
        """The window's articles as a log has them."""
        profiles = article_profiles(window.articles, self.dated)
        features = None
        if self.features is not None:
            features = np.asarray(self.features.articles(profiles), np.float64)
        elif self.true:
            features = np.column_stack((window.topics, np.ones(len(window.articles))))
        return ArticleTable(window.ids, features, None if self.profiles is None else profiles)


def site_view(people: Population, raw: bool, features: Features | None) -> SiteView:
    """Contexts made by `features`; else, with `raw`, the constant alone; else the true groups."""
    if getattr(features, "event_", None):
        raise ValueError(
            "these features change with the event: make a raw log (raw=True) and apply them to it"
        )
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
    dated = people.settings.novelty > 0
    return SiteView(contexts, profiles, features, features is None and not raw, dated)


def article_profiles(articles: Sequence[SimulatedArticle], dated: bool = False) -> pa.Table:
    """The raw profiles of articles, one row each."""
    table = pa.table(
        {
            "url_categories": pa.array([list(a.url_categories) for a in articles], MANY_CATEGORIES),
            "editor_categories": pa.array(
                [list(a.editor_categories) for a in articles], MANY_CATEGORIES
            ),
        }
    )
    if not dated:
        return table
    born = pa.array([a.born * HOUR for a in articles], pa.timestamp("us", tz="UTC"))
    return table.append_column("published", born)
