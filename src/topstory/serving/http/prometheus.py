"""The metrics page for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from topstory.serving.http.inspection import Inspector
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.http.views import bucket_counts
from topstory.serving.journal.clock import SECOND
from topstory.serving.service.service import Service
from topstory.serving.upkeep.keeper import Keeper

DRIFT_SECONDS = 1.0  # that a page waits for the newest drift; after that it has an earlier one


class Metrics(Collector):
    """Collects the metrics of a service."""

    def __init__(
        self,
        service: Service,
        keeper: Keeper,
        requests: RequestCounts,
        gather: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._service, self._keeper, self._requests = service, keeper, requests
        self._gather = gather  # adds the counts of other processes to `requests`
        self.inspector = Inspector(service.state)
        self._drift: dict[str, float] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def add(self, collector: Collector) -> None:
        """Add the metrics of another collector."""
        self._registry.register(collector)

    async def page(self) -> bytes:
        """The page in Prometheus' text format."""
        await self.outliers()
        inspection = await self.inspector.recent(DRIFT_SECONDS)
        self._drift = {} if inspection is None else inspection.drift
        async with self._service.reading.piece():
            return generate_latest(self._registry)

    async def outliers(self) -> dict[str, int]:
        """What was out of range or above a cap, by kind, in all processes."""
        if self._gather is not None:
            await self._gather()
        self._requests.outliers.update(self._service.front.take_outliers())
        self._requests.outliers.update(self._service.sequencer.influence.take())
        return dict(self._requests.outliers)

    def collect(self) -> Iterator[Metric]:
        """The metrics of the service itself."""
        yield from request_metrics(self._requests)
        yield from self._pools()
        yield from self._outliers()
        yield from self._profiles()
        service, commits = self._service, self._service.commits
        for name, help_text, value in (
            ("journal_waiting", "records that are not committed yet", commits.waiting),
            ("journal_commit_seconds", "duration of the last commit", commits.seconds),
            (
                "journal_failing",
                "1 if the journal cannot be written",
                commits.failing is not None,
            ),
            (
                "model_record",
                "number of the last record that the model has learned from",
                service.state.number,
            ),
            (
                *("snapshot_age_seconds", "age of the newest snapshot"),
                (service.clock.now() - self._keeper.at) / SECOND,
            ),
            (
                *(
                    "snapshot_lag_records",
                    "records after the newest snapshot, to be read at a start",
                ),
                service.state.number - self._keeper.number,
            ),
            (
                *(
                    "clock_ahead_seconds",
                    "how far the journal's clock is ahead of the system clock",
                ),
                service.clock.ahead / SECOND,
            ),
            (
                *(
                    "clock_behind_seconds",
                    "how far the journal's clock is behind a system clock that jumped ahead",
                ),
                service.clock.behind / SECOND,
            ),
            ("remembered_decisions", "recent decisions in memory", len(service.recent)),
        ):
            yield GaugeMetricFamily(f"topstory_{name}", help_text, value=float(value))
        yield CounterMetricFamily(
            "topstory_journal_commits", "commits of the journal", value=commits.count
        )

    def _pools(self) -> Iterator[Metric]:
        labels = ["pool", "bucket"]
        shows = CounterMetricFamily("topstory_shows", "articles shown", labels=labels)
        payoff = CounterMetricFamily("topstory_payoff", "sum of the payoffs", labels=labels)
        ctr = GaugeMetricFamily("topstory_ctr", "payoff per article shown", labels=labels)
        articles = GaugeMetricFamily("topstory_articles", "articles in the pool", labels=["pool"])
        drifted = GaugeMetricFamily(
            "topstory_model_drift", "largest entry of |A·A⁻¹ − I|, from rounding", labels=["pool"]
        )
        age = GaugeMetricFamily(
            "topstory_model_age_seconds",
            "time since the pool's policy last learned, or since the pool was opened",
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
            if name in self._drift:
                drifted.add_metric([name], self._drift[name])
        yield from (shows, payoff, ctr, articles, drifted, age)

    def _outliers(self) -> Iterator[Metric]:
        counted = CounterMetricFamily(
            "topstory_outliers",
            "contexts and payoffs out of range, refused; what a cap kept from being learned",
            labels=["kind"],
        )
        for kind, count in self._requests.outliers.items():
            counted.add_metric([kind], count)
        yield counted

    def _profiles(self) -> Iterator[Metric]:
        if self._service.features is not None:
            ignored = CounterMetricFamily(
                "topstory_unknown_categories",
                "unknown categories in raw profiles, ignored",
                labels=["field"],
            )
            unknown = Counter(self._service.features.unknown) + self._requests.unknown
            for name, count in unknown.items():
                ignored.add_metric([name], count)
            yield ignored


def request_metrics(requests: RequestCounts) -> Iterator[Metric]:
    """The requests that were answered, and how long they took."""
    counted = CounterMetricFamily(
        "topstory_requests", "requests answered", labels=["route", "status"]
    )
    for (route, status), count in requests.statuses.items():
        counted.add_metric([route, str(status)], count)
    yield counted
    took = HistogramMetricFamily(
        "topstory_request_seconds",
        "from the last byte of a request to its answer",
        labels=["route"],
    )
    for route, latency in requests.latencies.items():
        took.add_metric([route], latency.buckets(), latency.total)
    yield took
