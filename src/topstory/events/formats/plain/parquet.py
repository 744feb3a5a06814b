"""The plain layout as Parquet (docs/guides/importing.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from topstory.events.formats.faults import Faults
from topstory.events.formats.options import ReaderOptions
from topstory.events.formats.pipeline.validation import validate
from topstory.events.formats.plain.articles import read_articles
from topstory.events.formats.plain.jsonl import OPTIONS
from topstory.events.formats.plain.misspelt import note_misspelt
from topstory.events.formats.plain.tables import TableParser, TablePart, is_wanted
from topstory.events.formats.reader import MAX_BATCH_EVENTS, Progress
from topstory.events.log import EventLog

MAX_DECODED_BYTES = 1 << 25  # of a table at a time


class ParquetReader:
    """Reads a row an event; users and pools are lists.

    >>> ParquetReader().name
    'parquet'
    """

    name = "parquet"
    options = OPTIONS
    parallel = False

    def read(
        self,
        files: Sequence[Path],
        faults: Faults,
        progress: Progress,
        workers: int = 1,
        **options: Any,
    ) -> Iterator[tuple[Path, EventLog]]:
        """The events."""
        chosen = ReaderOptions(self.name, options, self.options)
        articles = chosen.text("articles")
        table = None if articles is None else read_articles(Path(articles))
        tables = TableParser(table, chosen.flag("constant"))
        for path in files:
            for part in _parts(path, faults, progress):
                with _naming_file(path):
                    rows = tables.rows(path, part)
                valid = validate(rows, faults)
                if valid is not None:
                    yield path, valid.log


def _parts(path: Path, faults: Faults, progress: Progress) -> Iterator[TablePart]:
    size, reported, done = path.stat().st_size, 0, 0
    with _naming_file(path):
        file = pq.ParquetFile(path)
    with file:
        names = [name for name in file.schema_arrow.names if is_wanted(name)]
        note_misspelt(file.schema_arrow.names, faults, path)
        metadata = file.metadata
        groups = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
        rows = max(1, metadata.num_rows)
        fitting = MAX_DECODED_BYTES * rows // max(1, sum(groups))
        batches = file.iter_batches(max(64, min(MAX_BATCH_EVENTS, fitting)), columns=names)
        while True:
            with _naming_file(path):
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
def _naming_file(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = (str(error).splitlines() or ["unreadable"])[0].rstrip(".")
        raise ValueError(f"{path}: damaged, or not a Parquet file ({reason})") from None
