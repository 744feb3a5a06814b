"""How far long work has come: a bar on standard error, where that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def following(doing: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yields what is to be told how much more is done."""
    from rich.progress import Progress

    from topstory.cli.output.consoles import remarks

    console = remarks()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(doing, total=max(1, total))
        yield lambda done: bar.advance(task, done)
