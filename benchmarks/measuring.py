"""How a time is taken: each task in turn, round after round, and the median of the rounds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True)
class Timing:
    """The seconds that each repetition of a task took."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """What is reported."""
        return median(self.seconds)

    @property
    def best(self) -> float:
        """The least disturbed repetition."""
        return min(self.seconds)

    def figures(self, events: int) -> dict[str, float]:
        """For the JSON file."""
        return {
            "events": events,
            "seconds": self.median,
            "best_seconds": self.best,
            "events_per_second": events / self.median,
        }


def interleaved(
    tasks: Mapping[str, Callable[[], object]],
    repetitions: int,
    clock: Callable[[], float] = perf_counter,
) -> dict[str, Timing]:
    """Time the tasks round robin, so that a noisy moment falls on all of them alike.

    Each is called once before, untimed: it compiles, and fills the caches. `process_time` for a
    clock counts the seconds of a core's own work.
    """
    for name, task in tasks.items():
        say(f"compiling {name}")
        task()
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for repetition in range(repetitions):
        for name, task in tasks.items():
            say(f"{repetition + 1} of {repetitions}: {name}")
            began = clock()
            task()
            seconds[name].append(clock() - began)
    say("")
    return {name: Timing(tuple(taken)) for name, taken in seconds.items()}


def say(what: str) -> None:
    """Tell a person who watches what is going on."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{what}")
        sys.stderr.flush()
