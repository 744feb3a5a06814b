"""What Prometheus sees: read from the service when it asks, counted beside it as requests come."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from topstory.serving.http.views import bucket_counts, drift
from topstory.serving.journal.clock import SECOND
from topstory.serving.service.service import Service
from topstory.serving.upkeep.keeper import Keeper

EDGES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


@dataclass
class Latency:
    """How long the requests of one route took."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(EDGES) + 1))
    total: float = 0.0

    def count(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect_left(EDGES, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, int]]:
        """How many took at most so long, as Prometheus has it."""
        return list(zip((*map(str, EDGES), "+Inf"), accumulate(self.counts), strict=True))


class Requests:
    """Requests by route and status, how long they took, and what was not known in them."""

    def __init__(self) -> None:
        self.unknown: Counter[str] = Counter()  # categories by field, in other processes' requests
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.latencies: dict[str, Latency] = {}

    def count(self, route: str, status: int, seconds: float) -> None:
        """One more."""
        self.statuses[route, status] += 1
        self.latency(route).count(seconds)

    def count_unfinished(self, route: str, status: int) -> None:
        """One more that was refused before it was whole: there is no time to tell of it."""
        self.statuses[route, status] += 1

    def latency(self, route: str) -> Latency:
        """Of one route."""
        found = self.latencies.get(route)
        if found is None:
            found = self.latencies[route] = Latency()
        return found


class Metrics(Collector):
    """The page at /metrics."""

    def __init__(
        self,
        service: Service,
        keeper: Keeper,
        requests: Requests,
        gather: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._service, self._keeper, self._requests = service, keeper, requests
        self._gather = gather  # has other processes' requests counted among these
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def add(self, collector: Collector) -> None:
        """Show more."""
        self._registry.register(collector)

    async def page(self) -> bytes:
        """In Prometheus' text format."""
        if self._gather is not None:
            await self._gather()
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """What the page shows."""
        yield from self._http()
        yield from self._pools()
        yield from self._profiles()
        service, commits = self._service, self._service.commits
        for name, words, value in (
            ("journal_waiting", "records not committed yet", commits.waiting),
            ("journal_commit_seconds", "how long the last commit took", commits.seconds),
            (
                "journal_failing",
                "1 while the journal cannot be written",
                commits.failing is not None,
            ),
            ("model_record", "the last record the model has learned from", service.state.number),
            (
                *("snapshot_age_seconds", "how old the newest snapshot is"),
                (service.clock.now() - self._keeper.at) / SECOND,
            ),
            (
                *("snapshot_lag_records", "records that a start has to read after it"),
                service.state.number - self._keeper.number,
            ),
            (
                *("clock_ahead_seconds", "how far the journal's time is ahead of the machine's"),
                service.clock.ahead / SECOND,
            ),
            ("remembered_decisions", "decisions in memory", len(service.recent)),
        ):
            yield GaugeMetricFamily(f"topstory_{name}", words, value=float(value))
        yield CounterMetricFamily("topstory_journal_commits", "commits", value=commits.count)

    def _http(self) -> Iterator[Metric]:
        counted = CounterMetricFamily(
            "topstory_requests", "requests answered", labels=["route", "status"]
        )
        for (route, status), count in self._requests.statuses.items():
            counted.add_metric([route, str(status)], count)
        yield counted
        took = HistogramMetricFamily(
            "topstory_request_seconds", "from its last byte to the answer", labels=["route"]
        )
        for route, latency in self._requests.latencies.items():
            took.add_metric([route], latency.buckets(), latency.total)
        yield took

    def _pools(self) -> Iterator[Metric]:
        labels = ["pool", "bucket"]
        shows = CounterMetricFamily("topstory_shows", "articles shown", labels=labels)
        payoff = CounterMetricFamily("topstory_payoff", "what they paid", labels=labels)
        ctr = GaugeMetricFamily("topstory_ctr", "payoff by show", labels=labels)
        articles = GaugeMetricFamily("topstory_articles", "in the pool", labels=["pool"])
        drifted = GaugeMetricFamily(
            "topstory_model_drift", "largest entry of |A·A⁻¹ − I|: rounding", labels=["pool"]
        )
        age = GaugeMetricFamily(
            "topstory_model_age_seconds",
            "since the last record that taught the pool's policy, or opened the pool",
            labels=["pool"],
        )
        now = self._service.clock.now()
        for name, decider in self._service.deciders.items():
            pool = decider.pool
            age.add_metric([name], (now - pool.taught) / SECOND)
            for bucket, counts in bucket_counts(pool.tally).items():
                shows.add_metric([name, bucket], counts.shows)
                payoff.add_metric([name, bucket], counts.payoff)
                if counts.ctr is not None:
                    ctr.add_metric([name, bucket], counts.ctr)
            articles.add_metric([name], len(pool.articles))
            drifted.add_metric([name], drift(pool))
        yield from (shows, payoff, ctr, articles, drifted, age)

    def _profiles(self) -> Iterator[Metric]:
        if self._service.features is not None:
            ignored = CounterMetricFamily(
                "topstory_unknown_categories", "in raw profiles, ignored", labels=["field"]
            )
            unknown = Counter(self._service.features.unknown) + self._requests.unknown
            for name, count in unknown.items():
                ignored.add_metric([name], count)
            yield ignored
