"""Worker processes that parse blocks of lines; results come in the order of the blocks."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from topstory.events.formats.pipeline.line_parser import LineParser, ParsedBlock
from topstory.events.formats.pipeline.lines import LineBlock

Task = tuple[Path, LineBlock | ParsedBlock]  # parsed already: it only keeps its place in the order


class ParserProcesses:
    """Processes with one parser each. They end when this process ends, however it ends.

    Each has one block at a time: that bounds the memory, and the two sides can never wait for each
    other to read.
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

    def __enter__(self) -> ParserProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    def parse(self, tasks: Iterable[Task]) -> Iterator[tuple[Path, ParsedBlock]]:
        """The parsed blocks, in order."""
        waiting: deque[tuple[Path, Connection | ParsedBlock]] = deque()
        for path, task in tasks:
            done: list[tuple[Path, ParsedBlock]] = []
            if isinstance(task, ParsedBlock):
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

    def _next(
        self, waiting: deque[tuple[Path, Connection | ParsedBlock]]
    ) -> tuple[Path, ParsedBlock]:
        path, source = waiting.popleft()
        if isinstance(source, ParsedBlock):
            return path, source
        try:
            found = source.recv()
        except (EOFError, OSError):
            raise OSError(
                f"{path}: a process that was reading it has ended, perhaps out of memory; "
                "import with one worker"
            ) from None
        if isinstance(found, Exception):
            raise found
        self._idle.append(source)
        return path, found


def _work(connection: Connection, make: Callable[[], LineParser]) -> None:
    """The loop of a worker process; it ends when the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parser = make()
    while True:
        try:
            file, block = connection.recv()
        except (EOFError, OSError):
            return
        found: ParsedBlock | Exception
        try:
            found = parser.parse(file, block)
        except Exception as error:  # passed on: the import raises it
            found = error
        try:
            connection.send(found)
        except OSError:
            return


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Processes started here ignore Ctrl-C: their parent ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # starting it would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
