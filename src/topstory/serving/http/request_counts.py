"""Counts of requests by route and status, and how long they took."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import accumulate

# Upper bounds of the histogram, in seconds.
LATENCY_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


@dataclass
class Latency:
    """A histogram of durations."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BOUNDS) + 1))
    total: float = 0.0

    def count(self, seconds: float) -> None:
        """Add one duration."""
        self.counts[bisect_left(LATENCY_BOUNDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, int]]:
        """Cumulative counts by upper bound, as Prometheus has them."""
        return list(zip((*map(str, LATENCY_BOUNDS), "+Inf"), accumulate(self.counts), strict=True))


class RequestCounts:
    """Requests by route and status, their latencies, and unknown categories in raw profiles."""

    def __init__(self) -> None:
        self.unknown: Counter[str] = Counter()  # categories by field, counted by other processes
        self.outliers: Counter[str] = Counter()  # by kind, counted by other processes
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.latencies: defaultdict[str, Latency] = defaultdict(Latency)  # by route

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self.statuses[route, status] += 1
        latency = self.latencies[route]  # without a call more: this is for every request
        latency.counts[bisect_left(LATENCY_BOUNDS, seconds)] += 1
        latency.total += seconds

    def count_unfinished(self, route: str, status: int) -> None:
        """Count a request that failed before it was complete; it has no latency."""
        self.statuses[route, status] += 1
