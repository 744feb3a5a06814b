"""Logs one after the other, with their articles and pools merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from topstory.events.columns.articles import ArticleTable, merge_profiles
from topstory.events.columns.contexts import Contexts, SparseContexts
from topstory.events.columns.exact import ExactValues, join_exact
from topstory.events.columns.pools import Indices, PoolTable, pool_keys, pools_of_keys
from topstory.events.columns.positions import position_type
from topstory.events.columns.times import Times
from topstory.events.columns.varying import VaryingNumbers, join_varying
from topstory.events.columns.visitors import join_visitors
from topstory.events.log import EventLog
from topstory.feature_identity import same_feature_model

if TYPE_CHECKING:
    from pyarrow import Table


def concat(logs: Iterable[EventLog]) -> EventLog:
    """`EventLog.concat`: merges articles by id, and pools that list the same in order."""
    logs = list(logs)
    if not logs:
        raise ValueError("nothing to concatenate: pass at least one log")
    if len(logs) == 1:
        return logs[0]
    named = [(f"log {number}", log.feature_model) for number, log in enumerate(logs)]
    model = same_feature_model(named)
    articles, article_maps = _merge_articles([log.article_table for log in logs])
    pools, pool_maps = _merge_pools([log.pool_table for log in logs], article_maps)
    numbers = {(log.event_numbers, log.event_features) for log in logs}
    if len(numbers) > 1:
        raise ValueError(
            "the logs' contexts differ in how many numbers are of the event: "
            f"{sorted({every for every, _ in numbers})}, of which features of articles are "
            f"{sorted({features for _, features in numbers})}; only logs with the same features "
            "can be one log"
        )
    propensity = None
    if any(log.recorded_propensity is not None for log in logs):
        propensity = np.concatenate([log.propensity for log in logs])
    return EventLog(
        users=join_users([log.users for log in logs]),
        pool=np.concatenate([new[log.pool] for new, log in zip(pool_maps, logs, strict=True)]),
        position=np.concatenate([log.position for log in logs]).astype(position_type(pools)),
        payoff=np.concatenate([log.payoff for log in logs]),
        recorded_propensity=propensity,
        times=_join_times(logs),
        pool_table=pools,
        article_table=articles,
        visitors=join_visitors([log.visitors for log in logs]),
        recorded_count=sum(log.propensities_recorded for log in logs),
        exact=_join_exact(logs),
        feature_model=model,
        decisions=_join_decisions(logs),
        event_numbers=logs[0].event_numbers,
        varying=_join_varying(logs),
        event_features=logs[0].event_features,
        propensity_estimate=next((e for e in (log.propensity_estimate for log in logs) if e), None),
    )


def _join_decisions(logs: Sequence[EventLog]) -> Table | None:
    if all(log.decisions is None for log in logs):
        return None
    from topstory.events.columns.decisions import join_decisions

    return join_decisions([(log.decisions, len(log)) for log in logs])


def _join_varying(logs: Sequence[EventLog]) -> VaryingNumbers | None:
    parts = [(log.varying, log.pool_sizes[log.pool]) for log in logs if log.varying is not None]
    return join_varying(parts) if parts else None


def _join_exact(logs: Sequence[EventLog]) -> ExactValues | None:
    """Exact values, if all logs have them."""
    parts = [log.exact for log in logs if log.exact is not None]
    return join_exact(parts) if len(parts) == len(logs) else None


def _merge_articles(tables: Sequence[ArticleTable]) -> tuple[ArticleTable, list[Indices]]:
    """All articles in order of appearance, and for each table old index -> new index."""
    first = tables[0]
    if all(table is first for table in tables):
        same = np.arange(len(first.ids), dtype=np.int32)
        return first, [same] * len(tables)
    ids = tuple(dict.fromkeys(key for table in tables for key in table.ids))
    merged = ArticleTable(ids, profiles=merge_profiles(ids, tables))
    maps = [np.array([merged.index[key] for key in table.ids], np.int32) for table in tables]
    described = [table.features is not None for table in tables if table.ids]
    if not any(described):
        return merged, maps
    if not all(described):
        raise ValueError(
            "some logs have article features and some have none; "
            "give all of them features, or none, before concatenating"
        )
    width = next(table.features.shape[1] for table in tables if table.features is not None)
    features = np.full((len(ids), width), np.nan)
    for number, (table, new) in enumerate(zip(tables, maps, strict=True)):
        if table.features is None:
            continue
        if table.features.shape[1] != width:
            raise ValueError(
                f"log {number} has {table.features.shape[1]} article features, "
                f"but those before it have {width}"
            )
        before = features[new]
        conflict = ~np.isnan(before).all(axis=1) & (before != table.features).any(axis=1)
        if conflict.any():
            at = int(conflict.argmax())
            raise ValueError(
                f"article {table.ids[at]!r} has features {table.features[at].tolist()} in log "
                f"{number} but {before[at].tolist()} before it; rename one of them"
            )
        features[new] = table.features
    return replace(merged, features=features), maps


def _merge_pools(
    tables: Sequence[PoolTable], article_maps: Sequence[Indices]
) -> tuple[PoolTable, list[Indices]]:
    """All distinct pools in order of appearance, and for each table old number -> new number."""
    if all(table is tables[0] for table in tables):
        same = np.arange(len(tables[0]), dtype=np.int32)
        return tables[0], [same] * len(tables)
    numbers: dict[bytes, int] = {}
    maps = []
    for table, new in zip(tables, article_maps, strict=True):
        keys = pool_keys(table, new, range(len(table)))
        maps.append(
            np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int32)
        )
    return pools_of_keys(numbers), maps


def join_users(parts: Sequence[Contexts]) -> Contexts:
    """Contexts one after the other; an error if they differ in dimension or kind."""
    dimensions = [int(part.shape[1]) for part in parts]
    if len(set(dimensions)) > 1:
        raise ValueError(
            f"the logs' contexts differ in length: {dimensions}; "
            "only logs with the same user features can be one log"
        )
    sparse = [part for part in parts if isinstance(part, SparseContexts)]
    dense = [part for part in parts if not isinstance(part, SparseContexts)]
    if not sparse:
        return np.concatenate(dense)
    if dense:
        raise ValueError("some logs have dense contexts and some sparse; make them all the same")
    starts = np.cumsum([0, *(len(part.indices) for part in sparse)])
    indptr = [part.indptr[:-1] + start for part, start in zip(sparse, starts, strict=False)]
    return SparseContexts(
        np.concatenate([*indptr, starts[-1:]]),
        np.concatenate([part.indices for part in sparse]),
        dimensions[0],
    )


def _join_times(logs: Sequence[EventLog]) -> Times | None:
    times = [log.times for log in logs if log.times is not None]
    if not times:
        return None
    if len(times) < len(logs):
        raise ValueError("some logs have timestamps and some have none; give all of them, or none")
    micros: npt.NDArray[np.int64] = np.concatenate([part.microseconds() for part in times])
    return Times.from_microseconds(micros)
