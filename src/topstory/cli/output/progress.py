"""Progress on standard error, shown only if that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from topstory.cli.output.numbers import rate

if TYPE_CHECKING:
    from topstory.features.regression.early_stopping import Step

WorkProgress = Callable[[str, float, float], None]


class _EventRate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(rate(task.speed) if task.speed else "", style="cyan")


@contextmanager
def work_bar(console: Console, name: str, *, events: bool = False) -> Iterator[WorkProgress]:
    """A bar over work of several parts: a callback for (what is done, work done, work in all).

    Args:
        console: standard error.
        name: what the bar says until the first call.
        events: whether work is counted in events; then the bar shows their rate.

    >>> with work_bar(Console(quiet=True), "study") as follow:
    ...     follow("ucb", 1, 2)
    """
    with _bar(
        console,
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        _EventRate() if events else TimeElapsedColumn(),
        TimeRemainingColumn(),
    ) as progress:
        task = progress.add_task(name, total=None)

        def follow(what: str, done: float, total: float) -> None:
            progress.update(task, completed=done, total=total, description=what)

        yield follow


@contextmanager
def count_bar(console: Console, name: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar over so many events: a callback for how many more are done."""
    with _bar(console, *Progress.get_default_columns()) as progress:
        task = progress.add_task(name, total=max(1, total))
        yield lambda more: progress.advance(task, more)


@contextmanager
def byte_bar(console: Console, name: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar over so many bytes: a callback for how many more are read."""
    with _bar(
        console,
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    ) as progress:
        task = progress.add_task(name, total=total)
        yield lambda more: progress.advance(task, more)


@contextmanager
def fit_status(console: Console) -> Iterator[Callable[[Step], None]]:
    """The last iteration of a fit whose length is not known: a callback for each step."""
    with console.status("reading") as status:

        def follow(step: Step) -> None:
            held_out = step.held_out_loss  # or the batch's, which is not learned from yet
            loss = "" if held_out is None else f", log loss {held_out:.5f}"
            auc = "" if step.auc is None else f", AUC {step.auc:.4f}"
            status.update(f"iteration {step.iteration}{loss}{auc}")

        yield follow


def _bar(console: Console, *columns: str | ProgressColumn) -> Progress:
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
