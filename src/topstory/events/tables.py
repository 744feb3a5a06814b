"""A log as one table, a row for each event: for Arrow, pandas, polars and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from topstory.events.columns.contexts import SparseContexts
from topstory.html_table import html_table

if TYPE_CHECKING:
    from pyarrow import Table

    from topstory.events.log import EventLog

SHOWN_ROWS = 5  # of a log in a notebook


def to_arrow(log: EventLog, pools: bool = False) -> Table:
    """`EventLog.to_arrow`."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    if log.times is not None:
        micros = pa.array(log.times.microseconds())
        columns["timestamp"] = micros.cast(pa.timestamp("us", "UTC"))
    visitor = _visitor(log)
    if visitor is not None:
        columns["visitor"] = visitor
    columns["shown"] = pa.DictionaryArray.from_arrays(
        log.shown_index, pa.array(list(log.article_ids), pa.string())
    )
    columns["payoff"] = pa.array(log.payoff)
    columns["propensity"] = pa.array(log.propensity)
    columns["pool"] = pa.array(log.pool)
    if pools:
        columns["candidates"] = pa.array(log.pools, pa.list_(pa.string())).take(log.pool)
    if isinstance(log.users, SparseContexts):
        offsets: Any = pa.array(log.users.indptr.astype(np.int32))
        indices: Any = pa.array(log.users.indices)
        columns["user"] = pa.ListArray.from_arrays(offsets, indices)
    else:
        flat = pa.array(np.ascontiguousarray(log.users).ravel())
        columns["user"] = pa.FixedSizeListArray.from_arrays(flat, log.dimension)
    if log.visitors is not None and log.profiles is not None:
        own = log.profiles.take(log.visitors.number)
        columns |= {f"user.{name}": own.column(name) for name in own.column_names}
    if log.article_profiles is not None:
        own = log.article_profiles.take(log.shown_index)
        columns |= {f"article.{name}": own.column(name) for name in own.column_names}
    if log.decisions is not None:
        for name in log.decisions.column_names:
            columns.setdefault(name, log.decisions.column(name))
    return pa.table(columns)


def _visitor(log: EventLog) -> Any:
    """Who came: by name if the log has names, else by number; None: it does not say."""
    import pyarrow as pa

    visitors = log.visitors
    if visitors is None:
        return None
    if visitors.ids is not None:
        return visitors.ids.take(pa.array(visitors.number))
    return pa.array(visitors.number)


def to_frame(log: EventLog, library: str, pools: bool) -> Any:
    """The table as a data frame of pandas or polars, if that is installed."""
    from importlib import import_module

    try:
        frames = import_module(library)
    except ModuleNotFoundError:
        raise ImportError(
            f"log.to_{library}() needs {library}: pip install {library}; log.to_arrow() needs "
            "nothing more",
            name=library,
        ) from None
    table = to_arrow(log, pools)
    return table.to_pandas() if library == "pandas" else frames.from_arrow(table)


def to_html(log: EventLog) -> str:
    """A log in a notebook: what it is, and its first events."""
    table = to_arrow(log[:SHOWN_ROWS], pools=True)
    names = [name for name in table.column_names if name != "pool"]
    rows = [[row[name] for name in names] for row in table.to_pylist()]
    return html_table(repr(log), names, rows)
