"""Reading the tables of a log's folder: articles, pools and, if it has them, users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events.columns.arrow_ids import UNKNOWN, as_numpy, id_indices, string_array
from topstory.events.columns.articles import ArticleTable, as_id
from topstory.events.columns.contexts import invalid_rows
from topstory.events.columns.pools import PoolTable
from topstory.events.columns.profiles import as_profiles
from topstory.events.columns.visitors import as_visitor_ids
from topstory.events.folder.contents import ARTICLES, CONTENTS, LogContents
from topstory.events.folder.location import Location
from topstory.events.folder.parquet_files import batches, opened
from topstory.events.folder.schemas import articles_schema, pools_schema, users_schema


def read_articles(path: Location, contents: LogContents) -> ArticleTable:
    """`articles.parquet`."""
    width = contents.article_features
    ids: list[str] = []
    features = np.empty((contents.articles, width or 0))
    schema = articles_schema(described=width is not None)
    for start, batch in batches(path, schema, contents.articles):
        ids += batch.column("article").to_pylist()
        if width is None:
            continue
        lists = batch.column("features")
        odd = np.flatnonzero(as_numpy(lists.value_lengths()) != width)
        if len(odd):
            raise ValueError(
                f"{path}: row {start + odd[0]}: an article must have {width} features, "
                f"as {CONTENTS} says"
            )
        rows = as_numpy(lists.flatten()).reshape(-1, width)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise ValueError(f"{path}: row {start + bad[0]}: features must be finite")
        features[start : start + len(batch)] = rows
    seen: set[str] = set()
    for row, key in enumerate(ids):
        as_id(key, f"{path}: row {row}")
        if key in seen:
            raise ValueError(f"{path}: row {row}: article {key!r} is listed twice")
        seen.add(key)
    profiles = None
    if contents.article_profile is not None:
        names, kinds = contents.article_profile, contents.article_profile_kinds
        profiles = _read_profiles(path, names, kinds, contents.articles)
    return ArticleTable(tuple(ids), None if width is None else features, profiles)


def read_pools(path: Location, contents: LogContents, articles: ArticleTable) -> PoolTable:
    """`pools.parquet`."""
    known = string_array(articles.ids)
    offsets = np.zeros(contents.pools + 1, np.int64)
    members = [np.empty(0, np.int32)]
    for start, batch in batches(path, pools_schema(), contents.pools):
        numbers = as_numpy(batch.column("pool"), zero_copy_only=True)
        if not np.array_equal(numbers, np.arange(start, start + len(batch))):
            raise ValueError(
                f"{path}: column 'pool' must count from 0 to {contents.pools - 1}, in order"
            )
        lists = batch.column("articles")
        sizes = as_numpy(lists.value_lengths())
        offsets[start + 1 : start + 1 + len(batch)] = sizes
        ids = lists.flatten()
        indices = id_indices(ids, known)
        if (indices == UNKNOWN).any():
            at = int((indices == UNKNOWN).argmax())
            number = start + int(np.searchsorted(np.cumsum(sizes), at, side="right"))
            raise ValueError(
                f"{path}: pool {number} lists unknown article {ids[at].as_py()!r}; "
                f"add it to {ARTICLES}"
            )
        members.append(indices)
    table = PoolTable(np.cumsum(offsets), np.concatenate(members))
    try:
        table.check(articles)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return table


@dataclass(frozen=True, eq=False)
class UserTable:
    """The users of a log, one row each."""

    contexts: npt.NDArray[np.float32]  # (V, d)
    profiles: pa.Table | None
    ids: Any = None  # (V,) who it is; None: each row is a visitor of its own


def read_users(path: Location, contents: LogContents) -> UserTable:
    """`users.parquet`."""
    users = contents.users or 0
    contexts = np.empty((users, contents.dimension), np.float32)
    given: list[Any] = []
    schema = users_schema(contents.dimension, contents.visitor_ids)
    for start, batch in batches(path, schema, users):
        if contents.visitor_ids:
            given.append(batch.column("visitor").cast(pa.string()))
        rows = as_numpy(batch.column("user").flatten())
        rows = rows.reshape(len(batch), -1)
        bad = np.flatnonzero(invalid_rows(rows))
        if len(bad):
            raise ValueError(f"{path}: row {start + bad[0]}: features must be finite")
        contexts[start : start + len(batch)] = rows
    profiles = None
    if contents.user_profile is not None:
        names, kinds = contents.user_profile, contents.user_profile_kinds
        profiles = _read_profiles(path, names, kinds, users)
    contexts.flags.writeable = False
    ids = None
    if contents.visitor_ids:
        ids = as_visitor_ids(pa.concat_arrays([pa.array([], pa.string()), *given]), users)
    return UserTable(contexts, profiles, ids)


def _read_profiles(
    path: Location, names: Sequence[str], kinds: Mapping[str, str] | None, rows: int
) -> pa.Table:
    with opened(path, pa.schema([]), rows) as file:
        missing = [name for name in names if name not in file.schema_arrow.names]
        if missing:
            raise ValueError(f"{path}: there is no column {missing[0]!r}, though {CONTENTS} has it")
        return as_profiles(str(path), file.read(columns=list(names)), rows, kinds=kinds)
