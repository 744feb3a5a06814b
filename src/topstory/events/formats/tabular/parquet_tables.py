"""A Parquet file in tables of some thousand rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from topstory.events.formats.reader import MAX_BATCH_EVENTS, Progress
from topstory.events.formats.tabular.table_part import TablePart

MAX_DECODED_BYTES = 1 << 25  # of a table at a time


def parquet_tables(
    path: Path,
    progress: Progress,
    wanted: Callable[[str], bool],
    seen: Callable[[list[str]], object],
) -> Iterator[TablePart]:
    """The columns that are wanted, part by part; `seen` is told all columns first."""
    size, reported, done = path.stat().st_size, 0, 0
    with naming_parquet_file(path):
        file = pq.ParquetFile(path)
    with file:
        names = [name for name in file.schema_arrow.names if wanted(name)]
        seen(file.schema_arrow.names)
        metadata = file.metadata
        groups = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
        rows = max(1, metadata.num_rows)
        fitting = MAX_DECODED_BYTES * rows // max(1, sum(groups))
        batches = file.iter_batches(max(64, min(MAX_BATCH_EVENTS, fitting)), columns=names)
        while True:
            with naming_parquet_file(path):
                batch = next(batches, None)
                if batch is None:
                    break
                batch.validate(full=True)
            lines = np.arange(done, done + len(batch)) + 1
            columns: dict[str, Any] = dict(zip(names, batch.columns, strict=True))
            yield TablePart(columns, lines, [], lambda _: b"")
            done += len(batch)
            progress(size * done // rows - reported)
            reported = size * done // rows
    progress(size - reported)


@contextmanager
def naming_parquet_file(path: Path) -> Iterator[None]:
    """Errors of Arrow as a ValueError that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = (str(error).splitlines() or ["unreadable"])[0].rstrip(".")
        raise ValueError(f"{path}: damaged, or not a Parquet file ({reason})") from None
