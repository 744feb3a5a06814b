"""Our own plain layout as CSV (docs/importing.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from topstory.events.log import EventLog
from topstory.events.readers.csv_tables import csv_tables
from topstory.events.readers.faults import Faults
from topstory.events.readers.plain_articles import read_articles
from topstory.events.readers.plain_jsonl import OPTIONS
from topstory.events.readers.plain_tables import Part, Tables, is_wanted
from topstory.events.readers.reader import Progress
from topstory.events.readers.settings import Settings
from topstory.events.readers.sifting import sift


class CsvReader:
    """Reads a row an event; the first line names the columns.

    >>> CsvReader().name
    'csv'
    """

    name = "csv"
    about = "plain layout: CSV with a header, pools as a|b|c"
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
        settings = Settings(self.name, options, self.options)
        articles = settings.text("articles")
        table = None if articles is None else read_articles(Path(articles))
        tables = Tables(table, settings.flag("constant"))
        for path in files:
            for block in csv_tables(path, faults, progress, is_wanted):
                part = Part(block.columns, block.lines, block.refused, block.text)
                sifted = sift(tables.rows(path, part), faults)
                if sifted is not None:
                    yield path, sifted.log
