"""The layout that all tables share."""

from rich import box
from rich.table import Table


def plain_table(*columns: str, title: str | None = None) -> Table:
    """A table with its first column left-aligned, the others right-aligned, and one rule.

    Where it is too wide, names in the first column go over several lines; numbers are never cut.
    """
    table = Table(title=title, box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 0, 0, 1))
    table.pad_edge, table.title_justify, table.title_style = False, "left", "bold"
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=i > 0)
    return table
