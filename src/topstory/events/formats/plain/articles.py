"""The articles file of the plain layouts: one article a row (docs/guides/importing.md)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from topstory.events.columns.articles import ArticleTable
from topstory.events.formats.faults import Faults
from topstory.events.formats.pipeline.lines import line_blocks

ArticleRow = tuple[int, str, list[float] | None]  # where, id, features


class _PlainArticle(msgspec.Struct):
    article: str | int
    features: list[float] | None = None


def read_articles(path: Path) -> ArticleTable:
    r"""Read .jsonl, .csv or .parquet; the error names the line of the first mistake.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("article,length,constant\nsports,0.5,1\n") and file.flush()
    ...     read_articles(Path(file.name)).features
    array([[0.5, 1. ]])
    """
    kinds = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}
    if path.suffix not in kinds:
        raise ValueError(f"{path}: articles come as .jsonl, .csv or .parquet, not {path.suffix!r}")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file of articles")
    articles: dict[str, list[float] | None] = {}
    for line, key, features in kinds[path.suffix](path):
        if key in articles:
            raise ValueError(f"{path}:{line}: article {key!r} is listed twice; list it once")
        articles[key] = features
        first = next(iter(articles.values()))
        if (first is None) != (features is None) or len(first or []) != len(features or []):
            raise ValueError(
                f"{path}:{line}: article {key!r} has another number of features than the first; "
                "give all the same"
            )
    try:
        return ArticleTable.from_mapping(articles)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _jsonl(path: Path) -> Iterator[ArticleRow]:
    decoder = msgspec.json.Decoder(_PlainArticle)
    for number, line in _lines(path):
        try:
            found = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(
                f'{path}:{number}: not an article ({error}); expected {{"article": "id", '
                '"features": [0.5, 1.0]}}'
            ) from None
        yield number, str(found.article), found.features


def _csv(path: Path) -> Iterator[ArticleRow]:
    at = -1
    width = 0
    for number, line in _lines(path):
        try:
            row = next(csv.reader([line.decode()], strict=True))
        except (UnicodeDecodeError, csv.Error):
            raise ValueError(f"{path}:{number}: not a row of CSV in UTF-8") from None
        if at < 0:
            if "article" not in row:
                raise ValueError(f"{path}:1: there is no column 'article'; it has {row}")
            at, width = row.index("article"), len(row)
            continue
        if len(row) != width:
            raise ValueError(f"{path}:{number}: {len(row)} fields, but the header has {width}")
        key = row.pop(at)
        try:
            yield number, key, [float(value) for value in row] if row else None
        except ValueError as error:
            raise ValueError(
                f"{path}:{number}: article {key!r}: {error}; features are numbers"
            ) from None


def _parquet(path: Path) -> Iterator[ArticleRow]:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: damaged, or not a Parquet file ({error})") from None
    if "article" not in table.column_names:
        raise ValueError(f"{path}: there is no column 'article'; it has {table.column_names}")
    for number, row in enumerate(table.to_pylist(), 1):
        key = row.pop("article")
        values: Any = row["features"] if list(row) == ["features"] else list(row.values())
        values = values if isinstance(values, list | None) else [values]
        if not all(isinstance(value, int | float) for value in values or []):
            raise ValueError(f"{path}: row {number}: article {key!r}: features must be numbers")
        yield number, str(key), [float(value) for value in values] if values else None


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    for block in line_blocks(path, Faults(strict=True), lambda _: None):
        for number, line in enumerate(block.lines(), block.first):
            if line.strip():
                yield number, line
