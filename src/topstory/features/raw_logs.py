"""Raw logs: what a log must have for features to be learned from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog
from topstory.events.visitors import Visitors
from topstory.kernels.compilation import Floats


def raw_visitors(log: EventLog) -> Visitors:
    """Who came, if the log has the raw profiles of users and of articles."""
    if log.visitors is None or log.visitors.profiles is None or log.article_profiles is None:
        who = "users" if log.profiles is None else "articles"
        raise ValueError(
            f"the log has no raw profiles of its {who}; features are made of them: "
            "EventLog.from_arrays takes visitor, profiles and article_profiles"
        )
    return log.visitors


def events_of(
    parts: Callable[[], Iterable[EventLog]],
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]]:
    """Who came, what was shown and what it paid, part after part."""
    users = articles = None
    for log in parts():
        visitors = raw_visitors(log)
        size = len(visitors.contexts)
        if (users, articles) not in ((None, None), (size, log.article_ids)):
            raise ValueError("the parts of a log must share its users and its articles")
        users, articles = size, log.article_ids
        yield visitors.number, log.shown_index, log.payoff


def check_articles(shown: Floats) -> None:
    """Refuse a log in which all articles shown look alike."""
    if len(np.unique(shown, axis=0)) < 2:
        raise ValueError(
            f"{len(shown)} article{'' if len(shown) == 1 else 's'} shown, all with the same "
            "categories: nothing tells who likes what; a fit needs articles that differ"
        )
