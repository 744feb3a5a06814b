"""Raw logs: logs with raw profiles, from which features are learned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog
from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.visitors import Visitors
from topstory.events.folder.stream import RawFolder, Visits
from topstory.events.log import check_log
from topstory.features.regression.event_blocks import BLOCK_EVENTS
from topstory.features.regression.labels import check_clicks
from topstory.kernels.compilation import Floats


def raw_visitors(log: EventLog, articles: bool = True) -> Visitors:
    """The log's visitors; ValueError unless it has raw profiles of users, and of `articles`."""
    check_log(log)
    if log.visitors is None or log.visitors.profiles is None:
        raise _no_profiles("users", log.feature_model)
    if articles and log.article_profiles is None:
        raise _no_profiles("articles")
    return log.visitors


def raw_folder(
    folder: str | PathLike[str], described: bool = True
) -> tuple[RawFolder, Any, Any | None, Any | None]:
    """A log's folder, the raw profiles of its users and articles, and who the users are, if known.

    ValueError if there are none of users, or none of articles where they must be `described`.
    """
    source, articles, users = RawFolder.opened(folder)
    if users is None or users.profiles is None:
        raise _no_profiles("users", source.contents.feature_model)
    if described and articles.profiles is None:
        raise _no_profiles("articles")
    if not source.contents.events:
        check_clicks(np.empty(0))
    return source, users.profiles, articles.profiles, users.ids


def visits_of(source: RawFolder) -> Iterator[Visits]:
    """Visitor, shown article and payoff, in parts of which one is in memory at a time."""
    for part in source.parts(BLOCK_EVENTS):
        yield source.read(part)


def _no_profiles(who: str, model: str | None = None) -> ValueError:
    if model is not None:
        return ValueError(
            f"the log has contexts that feature model {model} made, and no raw profiles any more: "
            "use it as it is, or take the raw log that it was made of"
        )
    return ValueError(
        f"the log has no raw profiles of its {who}, from which features are made: topstory import "
        "--map keeps them, topstory simulate --raw makes up such a log, and in Python "
        "EventLog.from_arrays takes visitor, profiles and article_profiles"
    )


def events_of(
    parts: Callable[[], Iterable[EventLog]],
) -> Iterator[Visits]:
    """Visitor, shown article and payoff of each event, part by part."""
    users = articles = None
    for log in parts():
        visitors = raw_visitors(log)
        size = len(visitors.contexts)
        if (users, articles) not in ((None, None), (size, log.article_ids)):
            raise ValueError("the parts of a log must share its users and its articles")
        users, articles = size, log.article_ids
        yield visitors.number, log.shown_index, log.payoff


def check_articles(shown: Floats) -> None:
    """Raise ValueError if all articles shown have the same categories."""
    if len(np.unique(shown, axis=0)) < 2:
        raise ValueError(
            f"{len(shown)} article{'' if len(shown) == 1 else 's'} shown, all with the same "
            "categories: there are no preferences to learn; a fit needs articles that differ"
        )


def with_features(
    log: EventLog,
    contexts: npt.NDArray[np.float32],
    articles: Floats | None,
    keep_profiles: bool,
    identity: str,
) -> EventLog:
    """The raw log's events with contexts (V, d) and article features (A, m), if any, of a model."""
    visitors = raw_visitors(log, articles is not None)
    return replace(
        log,
        users=contexts[visitors.number],
        visitors=replace(
            visitors, contexts=contexts, profiles=visitors.profiles if keep_profiles else None
        ),
        article_table=ArticleTable(
            log.article_ids, articles, log.article_profiles if keep_profiles else None
        ),
        feature_model=identity,
    )
