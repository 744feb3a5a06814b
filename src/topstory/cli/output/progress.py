"""How far a replay has come: a bar on standard error, where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from topstory.cli.output.numbers import rate


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(rate(task.speed) if task.speed else "", style="cyan")


class Bar:
    """One bar over several replays of the same log.

    >>> with Bar(Console(quiet=True), replays=2, events=10) as bar:
    ...     follow = bar.next("ucb")
    ...     follow(5, 10)
    """

    def __init__(self, console: Console, replays: int, events: int) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            _Rate(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._events, self._begun = events, 0
        self._task = self._progress.add_task("getting ready", total=max(1, replays * events))

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, words: str) -> None:
        """What is being done."""
        self._progress.update(self._task, description=words)

    def next(self, name: str) -> Callable[[int, int], None]:
        """The progress callback of the next replay."""
        before = self._begun * self._events
        self._begun += 1
        self.say(name)

        def follow(done: int, total: int) -> None:
            self._progress.update(self._task, completed=before + done)

        return follow


@contextmanager
def work_bar(console: Console, name: str) -> Iterator[Callable[..., None]]:
    """A bar over work of any kind: a callback told how much is done of how much, and of what.

    >>> with work_bar(Console(quiet=True), "ucb") as follow:
    ...     follow(1, 2)
    """
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(name, total=None)

        def follow(done: float, total: float, what: str = name) -> None:
            progress.update(task, completed=done, total=total, description=what)

        yield follow
