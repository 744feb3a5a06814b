"""Counts of the requests that workers answered, reported to the learner, which shows the sum."""

from __future__ import annotations

from collections.abc import Callable

from topstory.serving.config.feature_model import FeatureModel
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.workers.shared_memory.mapped_view import MappedView
from topstory.serving.workers.wire import Counted


class UnreportedCounts:
    """What a worker has not reported yet."""

    def __init__(
        self,
        requests: RequestCounts,
        view: MappedView,
        features: FeatureModel | None,
        outliers: Callable[[], dict[str, int]],
    ) -> None:
        self._requests, self._view, self._outliers = requests, view, outliers
        self._unknown = {} if features is None else features.unknown

    def taken(self) -> Counted:
        """The counts since the last call."""
        requests = self._requests
        statuses = [(route, status, n) for (route, status), n in requests.statuses.items()]
        latencies = [(route, each.counts, each.total) for route, each in requests.latencies.items()]
        torn, unknown = self._view.torn_reads, dict(self._unknown)
        counted = Counted(statuses, latencies, torn, unknown, self._outliers())
        self._unknown.clear()
        requests.statuses.clear()
        requests.latencies.clear()
        self._view.torn_reads = 0
        return counted


def add(counted: Counted, requests: RequestCounts) -> None:
    """Add what a worker reported to the sum.

    >>> requests, took = RequestCounts(), [3] + [0] * 12
    >>> for _ in range(2):
    ...     add(Counted([("/v1/decide", 200, 3)], [("/v1/decide", took, 0.5)], 0, {}, {}), requests)
    >>> requests.statuses["/v1/decide", 200], requests.latencies["/v1/decide"].total
    (6, 1.0)
    """
    for route, status, count in counted.statuses:
        requests.statuses[route, status] += count
    for route, counts, total in counted.latencies:
        latency = requests.latencies[route]
        latency.counts = [a + b for a, b in zip(latency.counts, counts, strict=True)]
        latency.total += total
    requests.unknown.update(counted.unknown)
    requests.outliers.update(counted.outliers)
