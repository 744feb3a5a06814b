"""Progress on standard error: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import perf_counter
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

LINE_SECONDS = 10.0  # between two lines at first; later a tenth of the time that has passed


class PlainLines:
    """Says in a line now and then how far the work is, where no bar can be drawn.

    Args:
        console: standard error.
        what: what is done first.
        every: seconds to the first line. Later ones are further apart, so that hours of work do not
            fill a file.

    >>> with PlainLines(Console(quiet=True), "study") as lines:
    ...     lines.follow("ucb", 1, 2)
    >>> lines.line(30.2)
    'ucb: 50 % after 30 s'
    """

    def __init__(self, console: Console, what: str, every: float = LINE_SECONDS) -> None:
        self.console, self.what, self.every = console, what, every
        self.share: float | None = None
        self._stop = Event()
        self._thread = Thread(target=self._run, name="topstory-progress", daemon=True)

    def __enter__(self) -> PlainLines:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def follow(self, what: str, done: float, total: float) -> None:
        """So much of the work is done."""
        self.what, self.share = what, done / total if total else None

    def line(self, seconds: float) -> str:
        """How far the work is."""
        share = "" if self.share is None else f"{self.share:.0%} ".replace("%", " %")
        return f"{self.what}: {share}after {seconds:.0f} s"

    def _run(self) -> None:
        began, wait = perf_counter(), self.every
        while not self._stop.wait(wait):
            passed = perf_counter() - began
            self.console.print(self.line(passed), markup=False, soft_wrap=True)
            wait = max(self.every, passed / 10)


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
    if not console.is_terminal:
        with _compilation_told(), PlainLines(console, name) as lines:
            yield lines.follow
        return
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
    with _amount_bar(console, name, max(1, total), *Progress.get_default_columns()) as follow:
        yield follow


@contextmanager
def byte_bar(console: Console, name: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar over so many bytes: a callback for how many more are read."""
    with _amount_bar(
        *(console, name, total),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    ) as follow:
        yield follow


@contextmanager
def fit_status(console: Console) -> Iterator[Callable[[Step], None]]:
    """The last iteration of a fit whose length is not known: a callback for each step."""
    if not console.is_terminal:
        with _compilation_told(), PlainLines(console, "reading") as lines:
            yield lambda step: lines.follow(_described(step), 0, 0)
        return
    with _compilation_told(), console.status("reading") as status:
        yield lambda step: status.update(_described(step))


def _described(step: Step) -> str:
    held_out = step.held_out_loss  # or the batch's, which is not learned from yet
    loss = "" if held_out is None else f", log loss {held_out:.5f}"
    auc = "" if step.auc is None else f", AUC {step.auc:.4f}"
    return f"iteration {step.iteration}{loss}{auc}"


@contextmanager
def _amount_bar(
    console: Console, name: str, total: int, *columns: str | ProgressColumn
) -> Iterator[Callable[[int], None]]:
    """A bar over an amount: a callback for how much more is done."""
    if not console.is_terminal:
        done = 0
        with _compilation_told(), PlainLines(console, name) as lines:

            def add(more: int) -> None:
                nonlocal done
                done += more
                lines.follow(name, done, total)

            yield add
        return
    with _bar(console, *columns) as progress:
        task = progress.add_task(name, total=total)
        yield lambda more: progress.advance(task, more)


@contextmanager
def _bar(console: Console, *columns: str | ProgressColumn) -> Iterator[Progress]:
    with (
        _compilation_told(),
        Progress(*columns, console=console, transient=True) as progress,
    ):
        yield progress


class _ToStandardError(logging.Handler):
    """Prints to whatever standard error is then: a bar on it moves down for the line."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stderr)


@contextmanager
def _compilation_told() -> Iterator[None]:
    """Says so if kernels are compiled meanwhile: nothing seems to happen then."""
    log, handler = logging.getLogger("topstory.kernels"), _ToStandardError()
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
