"""The plain layout as CSV (docs/guides/importing.md)."""

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
from topstory.events.formats.tabular.csv_tables import csv_tables
from topstory.events.formats.tabular.table_part import TablePart
from topstory.events.log import EventLog


class CsvReader:
    """Reads a row an event; the first line names the columns.

    >>> CsvReader().name
    'csv'
    """

    name = "csv"
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
        names: dict[str, None] = {}

        def wanted(name: str) -> bool:
            names[name] = None
            return is_wanted(name)

        for path in files:
            names.clear()
            for block in csv_tables(path, faults, progress, wanted):
                part = TablePart(block.columns, block.lines, block.rejected, block.text)
                valid = validate(tables.rows(path, part), faults)
                if valid is not None:
                    yield path, valid.log
            note_misspelt(names, faults, path)
