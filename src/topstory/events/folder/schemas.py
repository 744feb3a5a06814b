"""The columns of a log's Parquet files (docs/reference/log-format.md)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from topstory.events.columns.decisions import stored_schema
from topstory.events.folder.contents import LogContents


def events_schema(contents: LogContents) -> pa.Schema:
    """Of the files of events."""
    if contents.users is not None:
        user: tuple[str, pa.DataType] = ("visitor", pa.int32())
    elif contents.contexts == "sparse":
        user = ("user", pa.list_(_element(pa.int32())))
    else:
        user = ("user", pa.list_(_element(pa.float32()), contents.dimension))
    columns = [
        ("timestamp", pa.timestamp("us", tz="UTC")),
        user,
        ("pool", pa.int32()),
        ("shown", pa.dictionary(pa.int32(), pa.string())),
        ("payoff", pa.float32()),
        ("propensity", pa.float32()),
    ]
    if contents.exact:
        columns += [
            ("user_exact", pa.list_(_element(pa.float64()), contents.dimension)),
            ("payoff_exact", pa.float64()),
        ]
    if contents.varying:
        columns.append(("varying", pa.list_(_element(pa.float32()))))
    schema = _schema(columns if contents.timed else columns[1:])
    for field in stored_schema(contents.decisions):
        schema = schema.append(field)
    return schema


def users_schema(dimension: int, visitor_ids: bool) -> pa.Schema:
    """Of `users.parquet`, its raw profiles aside."""
    schema = _schema([("user", pa.list_(_element(pa.float32()), dimension))])
    if visitor_ids:
        schema = schema.append(pa.field("visitor", pa.dictionary(pa.int32(), pa.string())))
    return schema


def pools_schema() -> pa.Schema:
    """Of `pools.parquet`."""
    return _schema([("pool", pa.int32()), ("articles", pa.list_(_element(pa.string())))])


def articles_schema(described: bool) -> pa.Schema:
    """Of `articles.parquet`, with a column of features or without."""
    columns: list[tuple[str, pa.DataType]] = [("article", pa.string())]
    if described:
        columns.append(("features", pa.list_(_element(pa.float64()))))
    return _schema(columns)


def _element(kind: pa.DataType) -> Any:
    return pa.field("element", kind, nullable=False)


def _schema(columns: list[tuple[str, pa.DataType]]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns])
