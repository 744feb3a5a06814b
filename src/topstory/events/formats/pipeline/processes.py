"""Other processes that parse blocks of lines; what they find comes in the order of the blocks."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from topstory.events.formats.pipeline.line_parser import LineParser, Parsed
from topstory.events.formats.pipeline.lines import Block

Task = tuple[Path, Block | Parsed]  # parsed: what is known already, and only keeps its turn


class Crew:
    """Some processes with a parser each. They end with this one, however it ends.

    Each has one block at a time, so at most that many are in memory, and neither side ever waits
    for the other to read while the other waits for it.
    """

    def __init__(self, workers: int, make: Callable[[], LineParser]) -> None:
        context = get_context("spawn")
        self._processes: list[Any] = []
        self._idle: list[Connection] = []
        self._connections: list[Connection] = []
        with _uninterrupted():
            for _ in range(workers):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs, make), daemon=True)
                process.start()
                theirs.close()
                self._processes.append(process)
                self._connections.append(ours)
        self._idle = list(self._connections)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    def parse(self, tasks: Iterable[Task]) -> Iterator[tuple[Path, Parsed]]:
        """What is in the blocks, in their order."""
        waiting: deque[tuple[Path, Connection | Parsed]] = deque()
        for path, task in tasks:
            done: list[tuple[Path, Parsed]] = []
            if isinstance(task, Parsed):
                waiting.append((path, task))
            else:
                while not self._idle:
                    done.append(self._next(waiting))
                worker = self._idle.pop()
                worker.send((str(path), task))
                waiting.append((path, worker))
            yield from done
        while waiting:
            yield self._next(waiting)

    def _next(self, waiting: deque[tuple[Path, Connection | Parsed]]) -> tuple[Path, Parsed]:
        path, source = waiting.popleft()
        if isinstance(source, Parsed):
            return path, source
        try:
            found = source.recv()
        except (EOFError, OSError):
            raise OSError(
                f"{path}: a process that was reading it has ended, perhaps for want of memory; "
                "import with one worker"
            ) from None
        if isinstance(found, Exception):
            raise found
        self._idle.append(source)
        return path, found


def _work(connection: Connection, make: Callable[[], LineParser]) -> None:
    """What each process does, until there is nothing more to come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parser = make()
    while True:
        try:
            file, block = connection.recv()
        except (EOFError, OSError):
            return
        found: Parsed | Exception
        try:
            found = parser.parse(file, block)
        except Exception as error:  # whatever it is, it is the import's error
            found = error
        try:
            connection.send(found)
        except OSError:
            return


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Processes started here do not see Ctrl-C: it is for the one that started them to end them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # starting it would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
