"""The plain layout as Parquet (docs/guides/importing.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from topstory.events.formats.faults import Faults
from topstory.events.formats.options import ReaderOptions
from topstory.events.formats.pipeline.validation import validate
from topstory.events.formats.plain.articles import read_articles
from topstory.events.formats.plain.jsonl import OPTIONS
from topstory.events.formats.plain.misspelt import note_misspelt
from topstory.events.formats.plain.tables import TableParser, is_wanted
from topstory.events.formats.reader import Progress
from topstory.events.formats.tabular.parquet_tables import naming_parquet_file, parquet_tables
from topstory.events.log import EventLog


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

            def misspelt(names: list[str], path: Path = path) -> None:
                note_misspelt(names, faults, path)

            for part in parquet_tables(path, progress, is_wanted, misspelt):
                with naming_parquet_file(path):
                    rows = tables.rows(path, part)
                valid = validate(rows, faults)
                if valid is not None:
                    yield path, valid.log
