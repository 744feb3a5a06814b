"""A discrete-event simulation: what happens when, cores that are waited for, and a log's disk."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count

Action = Callable[[], None]


class Simulation:
    """A clock that jumps from one event to the next; events of one moment keep their order.

    >>> simulation, seen = Simulation(), []
    >>> simulation.at(2.0, lambda: seen.append(simulation.now))
    >>> simulation.run(5.0)
    >>> seen, simulation.now
    ([2.0], 5.0)
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[tuple[float, int, Action]] = []
        self._number = count()

    def at(self, time: float, action: Action) -> None:
        """Do something at that time, or now if it is past."""
        heapq.heappush(self._waiting, (max(time, self.now), next(self._number), action))

    def after(self, seconds: float, action: Action) -> None:
        """Do something so much later."""
        self.at(self.now + seconds, action)

    def run(self, until: float) -> None:
        """Let everything happen up to that time."""
        while self._waiting and self._waiting[0][0] <= until:
            self.now, _, action = heapq.heappop(self._waiting)
            action()
        self.now = until


class _Meter:
    """How much was busy so far: how many, times how long."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation, self._count, self._since, self._sum = simulation, 0, 0.0, 0.0

    def add(self, count: int) -> None:
        self._sum, self._since = self.total, self._simulation.now
        self._count += count

    @property
    def total(self) -> float:
        return self._sum + self._count * (self._simulation.now - self._since)


class Cores:
    """Some cores with one queue: work is done in the order in which it came."""

    def __init__(self, simulation: Simulation, cores: int) -> None:
        self._simulation, self.cores, self._free = simulation, cores, cores
        self._queue: deque[tuple[float, Action]] = deque()
        self._meter = _Meter(simulation)

    @property
    def busy(self) -> float:
        """Core-seconds of work so far."""
        return self._meter.total

    def use(self, seconds: float, then: Action) -> None:
        """Work so long on one core, then go on."""
        self._queue.append((seconds, then))
        self._begin()

    def _begin(self) -> None:
        while self._free and self._queue:
            seconds, then = self._queue.popleft()
            self._free -= 1
            self._meter.add(1)
            self._simulation.after(seconds, lambda then=then: self._end(then))  # type: ignore[misc]

    def _end(self, then: Action) -> None:
        self._free += 1
        self._meter.add(-1)
        then()
        self._begin()


class LogDisk:
    """A write-ahead log: one flush at a time takes all that came while the last one ran."""

    def __init__(self, simulation: Simulation, flush: float, bytes_per_second: float) -> None:
        self._simulation, self._flush, self._rate = simulation, flush, bytes_per_second
        self._waiting: list[tuple[float, Action]] = []
        self._flushing = False
        self._meter = _Meter(simulation)
        self.flushes, self.commits, self.written = 0, 0, 0.0

    @property
    def busy(self) -> float:
        """Seconds of flushing so far."""
        return self._meter.total

    def commit(self, size: float, then: Action) -> None:
        """Make so many bytes durable, then go on."""
        self._waiting.append((size, then))
        if not self._flushing:
            self._begin()

    def _begin(self) -> None:
        taken, self._waiting = self._waiting, []
        self._flushing = True
        size = sum(each for each, _ in taken)
        seconds = self._flush + size / self._rate
        self._meter.add(1)
        self.flushes += 1
        self.commits += len(taken)
        self.written += size
        self._simulation.after(seconds, lambda: self._end(taken))

    def _end(self, taken: list[tuple[float, Action]]) -> None:
        self._flushing = False
        self._meter.add(-1)
        for _, then in taken:
            then()
        if self._waiting and not self._flushing:
            self._begin()
