"""Where answers and remarks go."""

import sys
from typing import NoReturn

from rich.console import Console

WIDTH = 100  # of what is not a terminal: a file or a pipe reads the same wherever it was made


class _Answers(Console):
    def on_broken_pipe(self) -> NoReturn:
        raise  # rich calls this while it handles a BrokenPipeError


def answers() -> Console:
    """Standard output."""
    return _Answers(highlight=False, width=None if sys.stdout.isatty() else WIDTH)


def remarks() -> Console:
    """Standard error."""
    return Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else WIDTH)
