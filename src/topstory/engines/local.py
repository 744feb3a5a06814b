"""The engine that runs on all cores of this machine."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import ClassVar

from topstory.engines.engine import Engine, Item, Out, ResultRef, Shared
from topstory.engines.serial import kept_here, shared_here

QUEUED_PER_WORKER = 2  # items that wait for each worker: enough to keep it busy, few enough to hold


class LocalEngine(Engine):
    """Threads of this process, which share the log: kernels and numpy release Python's lock.

    Args:
        workers: how many; by default as many as there are cores this process may use.

    >>> list(LocalEngine(workers=2).map(lambda item, shared: item * shared, [1, 2, 3], shared=10))
    [10, 20, 30]
    """

    name: ClassVar[str] = "local"

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1 (None: one a core), got {workers!r}")
        self.workers = workers or cores()

    def map(
        self,
        function: Callable[[Item, Shared], Out],
        items: Iterable[Item | ResultRef[Item]],
        shared: Shared,
    ) -> Iterator[Out]:
        """The results; at most a few items are taken ahead of the one being waited for."""
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="topstory")
        waiting: deque[Future[Out]] = deque()
        given = shared_here(shared)
        try:
            for item in items:
                waiting.append(pool.submit(function, kept_here(item), given))
                if len(waiting) > QUEUED_PER_WORKER * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def finished(
        self, function: Callable[[Item, Shared], Out], items: Sequence[Item], shared: Shared
    ) -> Iterator[tuple[int, Out]]:
        """As they finish."""
        # Not a pool, which an interrupted study would have to wait for: these threads are daemons.
        done: SimpleQueue[tuple[int, Callable[[], Out]]] = SimpleQueue()
        left, lock, stop = enumerate(items), Lock(), Event()

        def work() -> None:
            while not stop.is_set():
                with lock:
                    taken = next(left, None)
                if taken is None:
                    return
                outcome: Future[Out] = Future()
                try:
                    outcome.set_result(function(taken[1], shared))
                except BaseException as error:
                    outcome.set_exception(error)
                done.put((taken[0], outcome.result))

        try:
            for number in range(min(self.workers, len(items))):
                Thread(target=work, name=f"topstory-{number}", daemon=True).start()
            for _ in range(len(items)):
                place, result = done.get()
                yield place, result()
        finally:
            stop.set()

    def keep(
        self, function: Callable[[Item, Shared], Out], items: Iterable[Item], shared: Shared
    ) -> list[ResultRef[Out]]:
        """The results, in this process."""
        return [ResultRef(result) for result in self.map(function, items, shared)]


def cores() -> int:
    """How many cores this process may use.

    >>> cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
