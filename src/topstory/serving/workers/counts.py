"""Requests that workers have answered, told to the learner, who shows the sum."""

from __future__ import annotations

from topstory.serving.config.feature_model import FeatureModel
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.workers.shared_memory.mirror import Mirror
from topstory.serving.workers.wire import Counted


class Counts:
    """A worker's: what it has not told yet."""

    def __init__(
        self, requests: RequestCounts, mirror: Mirror, features: FeatureModel | None
    ) -> None:
        self._requests, self._mirror = requests, mirror
        self._unknown = {} if features is None else features.unknown

    def taken(self) -> Counted:
        """Since the last time."""
        requests = self._requests
        statuses = [(route, status, n) for (route, status), n in requests.statuses.items()]
        latencies = [(route, each.counts, each.total) for route, each in requests.latencies.items()]
        told = Counted(statuses, latencies, self._mirror.again, dict(self._unknown))
        self._unknown.clear()
        requests.statuses.clear()
        requests.latencies.clear()
        self._mirror.again = 0
        return told


def add(told: Counted, requests: RequestCounts) -> None:
    """Add what a worker told to the sum.

    >>> requests, took = RequestCounts(), [3] + [0] * 12
    >>> for _ in range(2):
    ...     add(Counted([("/v1/decide", 200, 3)], [("/v1/decide", took, 0.5)], 0, {}), requests)
    >>> requests.statuses["/v1/decide", 200], requests.latencies["/v1/decide"].total
    (6, 1.0)
    """
    for route, status, count in told.statuses:
        requests.statuses[route, status] += count
    for route, counts, total in told.latencies:
        latency = requests.latency(route)
        latency.counts = [a + b for a, b in zip(latency.counts, counts, strict=True)]
        latency.total += total
    requests.unknown.update(told.unknown)
