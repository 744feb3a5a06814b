"""What a front end answers by itself beside decisions and payoffs; the rest goes to the learner."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import msgspec
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from topstory.serving.api.messages import Health
from topstory.serving.fleet.front.published import PublishedView
from topstory.serving.fleet.front.transport import DatabaseTransport
from topstory.serving.http.admin_routes import PROMETHEUS
from topstory.serving.http.asgi import header
from topstory.serving.http.prometheus import request_metrics
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.security.api_keys import Keys


class FrontRoutes(Collector):
    """Health and metrics of this process; `rest` answers everything else."""

    def __init__(
        self,
        rest: ASGIApp,
        transport: DatabaseTransport,
        view: PublishedView,
        keys: Keys,
        requests: RequestCounts,
    ) -> None:
        self._rest, self._transport, self._view = rest, transport, view
        self._keys, self._requests = keys, requests
        self._registry = CollectorRegistry()
        self._registry.register(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request by ASGI."""
        path = scope["path"] if scope["method"] in ("GET", "HEAD") else ""
        if path == "/health/live":
            response = _json(Health("live"))
        elif path == "/health/ready":
            response = self._ready()
        elif path == "/metrics" and b"learner" not in scope["query_string"]:
            self._keys.allow(header(scope, b"authorization"), "read", monotonic())
            response = Response(generate_latest(self._registry), media_type=PROMETHEUS)
        else:
            await self._rest(scope, receive, send)
            return
        await response(scope, receive, send)

    def _ready(self) -> Response:
        if self._transport.failing is not None and self._transport.serves_late:
            age = round(self._view.age, 3)
            return _json(Health("degraded", "the database cannot be written", age))
        if self._transport.failing is None:
            return _json(Health("ready", model_age_seconds=round(self._view.age, 3)))
        return _json(Health("not ready", "the database cannot be written"), 503)

    def collect(self) -> Iterator[Metric]:
        """The metrics of this process."""
        yield from request_metrics(self._requests)
        transport = self._transport
        for name, help_text, value in (
            ("waiting", "rows that are not handed in yet", transport.waiting),
            ("batch_seconds", "duration of the last batch", transport.seconds),
            ("failing", "1 if nothing can be handed in", transport.failing is not None),
            ("model_version", "version of the model that it scores from", self._view.version),
            ("model_record", "last record of the journal in that model", self._view.record),
            ("model_checksum", "checksum of that model", self._view.checksum),
            ("model_age_seconds", "time since that was published", self._view.age),
        ):
            yield GaugeMetricFamily(f"topstory_front_{name}", help_text, value=float(value))
        yield CounterMetricFamily(
            "topstory_front_batches", "batches handed in", value=transport.count
        )


def _json(health: Health, status: int = 200) -> Response:
    return Response(msgspec.json.encode(health), status, media_type="application/json")
