"""A terminal that remembers what was printed on it."""

from io import StringIO

from rich.console import Console


def terminal() -> Console:
    return Console(file=StringIO(), force_terminal=True, width=80)


def printed(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()
