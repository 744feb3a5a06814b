"""Opening, reading and writing a log's Parquet files; errors name the file and the problem."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from topstory.events.columns.arrow_ids import is_string_type
from topstory.events.folder.contents import CONTENTS
from topstory.events.folder.location import Location, RemotePath

BATCH_ROWS = 1 << 17  # rows decoded at a time: a few megabytes


@contextmanager
def opened(path: Location, schema: pa.Schema, rows: int) -> Iterator[pq.ParquetFile]:
    """The Parquet file, with the columns of `schema` and as many rows as `log.json` counts."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: the log's {CONTENTS} lists this file, but it is missing")
    source = path.open() if isinstance(path, RemotePath) else path
    with _naming_file(path), pq.ParquetFile(source, page_checksum_verification=True) as file:
        for field in schema:
            _check_column(file.schema_arrow, field, path)
        if file.metadata.num_rows != rows:
            raise ValueError(
                f"{path}: it has {file.metadata.num_rows} rows, but {CONTENTS} counts {rows}; "
                "part of the log was replaced: write the log again"
            )
        yield file


def batches(
    path: Location, schema: pa.Schema, rows: int, first: int = 0, last: int | None = None
) -> Iterator[tuple[int, Any]]:
    """The file's rows, or first … last − 1 of them, in batches, each with its first row's number.

    There are nulls only in columns for which the schema allows them.
    """
    last = rows if last is None else last
    with opened(path, schema, rows) as file:
        start, groups = _overlapping(file, first, last)
        for batch in file.iter_batches(
            BATCH_ROWS, row_groups=groups, columns=schema.names, use_threads=False
        ):
            low, high = max(first - start, 0), min(last - start, len(batch))
            if low < high:
                wanted = batch.slice(low, high - low)
                for field in schema:
                    if not field.nullable:
                        _check_nulls(wanted.column(field.name), path, field.name)
                yield start + low, wanted
            start += len(batch)


def _overlapping(file: pq.ParquetFile, first: int, last: int) -> tuple[int, list[int]]:
    """The row groups that have some of these rows, and the number of their first row."""
    groups, start, before = list[int](), 0, 0
    for group in range(file.metadata.num_row_groups):
        after = before + file.metadata.row_group(group).num_rows
        if before < last and first < after:
            start = start if groups else before
            groups.append(group)
        before = after
    return start, groups


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer with the log's settings: compressed, with checksums."""
    # Contexts hardly repeat, so a dictionary for them is wasted work. Packing timestamps and
    # visitors into few bits halves the rest. Checksums let a reader recognise a damaged page, at
    # no measurable cost.
    packed = [
        field.name
        for field in schema
        if field.name in ("timestamp", "visitor", "decision", "model_version")
        and (pa.types.is_timestamp(field.type) or pa.types.is_integer(field.type))
    ]
    single = [*packed, "user", "features"]
    repeated: Any = [name for name in schema.names if name not in single]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=repeated,
        column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
        write_page_checksum=True,
    )


@contextmanager
def _naming_file(path: Location) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's own words: no permission, no such file
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise ValueError(
            f"{path}: damaged, or not a Parquet file ({reason}); restore it, or write the log again"
        ) from error


def _check_column(found: pa.Schema, wanted: Any, path: Location) -> None:
    if found.names.count(wanted.name) != 1:
        raise ValueError(
            f"{path}: there is no column {wanted.name!r}; it has {', '.join(found.names)}"
        )
    kind = found.field(wanted.name).type
    if not _compatible(kind, wanted.type):
        raise ValueError(f"{path}: column {wanted.name!r} must be {wanted.type}, but it is {kind}")


def _check_nulls(column: Any, path: Location, name: str) -> None:
    nested = isinstance(column, pa.ListArray | pa.FixedSizeListArray)
    if column.null_count or (nested and column.flatten().null_count):
        raise ValueError(f"{path}: column {name!r} has nulls; every event needs a value")


def _compatible(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column of type `found` can be read as `wanted`; all string types are alike.

    >>> _compatible(pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
    True
    >>> _compatible(pa.list_(pa.float32()), pa.list_(pa.float32(), 6))
    False
    """
    if is_string_type(wanted):
        return is_string_type(found)
    if pa.types.is_list(wanted):
        return pa.types.is_list(found) and _compatible(found.value_type, wanted.value_type)
    if pa.types.is_fixed_size_list(wanted):
        return (
            pa.types.is_fixed_size_list(found)
            and found.list_size == wanted.list_size
            and _compatible(found.value_type, wanted.value_type)
        )
    return bool(found == wanted)
