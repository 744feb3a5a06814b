"""Tables that are printed, and written into a page between two marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable


@dataclass(frozen=True)
class Table:
    """A title, column heads, and rows of text; the first column is a name, the rest numbers."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def print(self, console: Console) -> None:
        """For people at a terminal."""
        drawn = RichTable(title=self.title, title_justify="left", box=box.SIMPLE_HEAD)
        for place, head in enumerate(self.columns):
            drawn.add_column(head, justify="left" if place == 0 else "right", overflow="fold")
        for row in self.rows:
            drawn.add_row(*row)
        console.print(drawn)

    def markdown(self) -> str:
        """For a page."""
        lines = [self.columns, ("---", *["---:"] * (len(self.columns) - 1)), *self.rows]
        drawn = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        return f"**{self.title}**\n\n{drawn}\n"


@dataclass(frozen=True)
class Section:
    """What one part of the benchmarks found: tables for people, figures for machines."""

    tables: list[Table]
    figures: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    beside: dict[str, Section] = field(default_factory=dict)  # for other pages, by their names

    def print(self, console: Console) -> None:
        """Tables, then notes."""
        for table in self.tables:
            table.print(console)
        for note in self.notes:
            console.print(f"  {note}", highlight=False)
        for other in self.beside.values():
            other.print(console)
        console.print()

    def markdown(self) -> str:
        """Tables, then notes as a list."""
        notes = "".join(f"- {note}\n" for note in self.notes)
        return "\n".join(
            [*(table.markdown() for table in self.tables), *([notes] if notes else [])]
        )


def fill_in(page: Path, texts: dict[str, str]) -> None:
    """Replace what the page has between `<!-- begin NAME -->` and `<!-- end NAME -->`."""
    content = page.read_text("utf-8")
    for name, text in texts.items():
        marks = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        place = marks.search(content)
        if place is None:
            raise ValueError(f"{page} has no '<!-- begin {name} -->' … '<!-- end {name} -->'")
        content = f"{content[: place.end(1)]}\n{text}\n{content[place.start(2) :]}"
    page.write_text(content, "utf-8")
