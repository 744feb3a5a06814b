"""Building a log from its columns (`EventLog.from_arrays`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.checks import reals
from topstory.events.columns.contexts import Contexts, SparseContexts, as_contexts
from topstory.events.columns.exact import ExactValues
from topstory.events.columns.pools import PoolTable, as_lists, pool_numbers
from topstory.events.columns.positions import shown_positions
from topstory.events.columns.propensity import recorded
from topstory.events.columns.times import Times, timestamps_as_microseconds
from topstory.events.columns.visitors import Visitors
from topstory.events.log import EventLog

if TYPE_CHECKING:
    from pyarrow import Table


def from_arrays(
    users: Any,
    pools: Sequence[Iterable[str | int]],
    pool: npt.ArrayLike,
    shown: Any,
    payoff: npt.ArrayLike,
    articles: Mapping[Any, npt.ArrayLike | None] | None,
    timestamps: npt.ArrayLike | None,
    propensity: npt.ArrayLike | None,
    visitor: npt.ArrayLike | None,
    profiles: Any,
    article_profiles: Any,
    exact: bool,
    text: Collection[str],
    decisions: Any = None,
    visitor_ids: Any = None,
) -> EventLog:
    """Check the columns and convert them to the log's own types."""
    users_text, articles_text = _text(text, profiles, article_profiles)
    visitors = None
    if visitor is not None:
        visitors = Visitors.of(users, visitor, profiles, users_text, visitor_ids)
        contexts: Contexts = visitors.contexts[visitors.number]
    elif visitor_ids is not None:
        raise ValueError("visitor_ids need visitor: for each event the row of its user")
    elif profiles is not None:
        raise ValueError("profiles need visitor: for each event the profile of its user")
    else:
        contexts = as_contexts(users)
    events = len(contexts)
    lists = as_lists(pools)
    if articles is None:
        article_table = ArticleTable(tuple(dict.fromkeys(key for ids in lists for key in ids)))
    else:
        article_table = ArticleTable.from_mapping(articles)
    if article_profiles is not None:
        article_table = article_table.described(article_profiles, articles_text)
    pool_table = PoolTable.from_lists(lists, article_table)
    numbered = pool_numbers(pool, events, len(pool_table))
    times = None
    if timestamps is not None:
        times = Times.from_microseconds(timestamps_as_microseconds(timestamps, events))
    return EventLog(
        users=contexts,
        pool=numbered,
        position=shown_positions(_text_ids(shown), numbered, pool_table, article_table),
        payoff=reals("payoff", payoff, events),
        recorded_propensity=recorded(propensity, numbered, pool_table),
        times=times,
        pool_table=pool_table,
        article_table=article_table,
        visitors=visitors,
        recorded_count=None if propensity is None else events,
        exact=_exact(users, payoff, contexts) if exact and visitors is None else None,
        decisions=_decisions(decisions, events, visitors),
    )


def _text_ids(shown: Any) -> Any:
    """Ids with whole numbers as text."""
    if getattr(getattr(shown, "dtype", None), "kind", "") in ("i", "u"):
        return np.asarray(shown).astype(str)
    if isinstance(shown, list | tuple) and any(isinstance(each, int) for each in shown):
        return [str(each) if type(each) is int else each for each in shown]
    return shown


def _text(
    names: Collection[str], users: Any, articles: Any
) -> tuple[Collection[str], Collection[str]]:
    """The fields of the users that are text, and those of the articles."""
    if not names:
        return (), ()
    if isinstance(names, str):
        raise ValueError(f"text must be a list of fields, got the string {names!r}")
    from topstory.events.columns.profiles import field_names

    sides = [() if each is None else field_names(each) for each in (users, articles)]
    for name in names:
        if not any(name in side for side in sides):
            raise ValueError(f"text: there is no field {name!r} in profiles or article_profiles")
    of_users, of_articles = ([name for name in names if name in side] for side in sides)
    return of_users, of_articles


def _decisions(columns: Any, events: int, visitors: Visitors | None) -> Table | None:
    if columns is None:
        return None
    from topstory.events.columns.decisions import as_decisions

    table = as_decisions(columns, events)
    if visitors is not None and "visitor" in table.column_names:
        raise ValueError("decisions: give no column 'visitor': the argument visitor= says who came")
    return table


def _exact(users: Any, payoff: npt.ArrayLike, contexts: Contexts) -> ExactValues | None:
    """The values as they came; None if contexts are sparse, which rounding does not change."""
    if isinstance(contexts, SparseContexts):
        return None
    return ExactValues(np.array(users, np.float64), np.array(payoff, np.float64))
