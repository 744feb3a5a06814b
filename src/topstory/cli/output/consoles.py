"""Standard output for answers, standard error for progress and warnings."""

import sys
from typing import NoReturn

import msgspec
import typer
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

FILE_WIDTH = 100  # columns where output is no terminal: a file or a pipe is the same on any machine


class _StdoutConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        raise  # rich calls this while it handles a BrokenPipeError


def stdout_console() -> Console:
    """Standard output."""
    return _StdoutConsole(highlight=False, width=None if sys.stdout.isatty() else FILE_WIDTH)


def stderr_console() -> Console:
    """Standard error."""
    return Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else FILE_WIDTH)


def print_json(record: msgspec.Struct) -> None:
    """Print a record as indented JSON."""
    typer.echo(msgspec.json.format(msgspec.json.encode(record), indent=2).decode())


def print_line(text: str) -> None:
    """Print one line of plain text on standard output, which wraps only at the terminal's edge."""
    stdout_console().print(text, markup=False, soft_wrap=True)


def print_warning(message: str, console: Console, title: str) -> None:
    """Print a panel if standard error is a terminal, and otherwise one line."""
    if console.is_terminal:
        text = Text(message, style="bold yellow")
        console.print(Panel(text, title=title, border_style="bold red"))
    else:
        print(f"WARNING: {message}", file=sys.stderr)
