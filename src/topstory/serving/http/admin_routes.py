"""The other routes: editors, operators, health."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from topstory.serving.api.errors import Refused
from topstory.serving.api.messages import ArticleId, ArticleRequest, Health, RemovedAnswer
from topstory.serving.config.schema import Role
from topstory.serving.http.asgi import read_body
from topstory.serving.http.hot_routes import decoded
from topstory.serving.http.metrics import Metrics
from topstory.serving.http.openapi import openapi
from topstory.serving.http.views import article_view, article_views, stats
from topstory.serving.security.api_keys import Keys
from topstory.serving.service.service import Service
from topstory.serving.upkeep.keeper import Keeper

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
Life = Callable[[Any], AbstractAsyncContextManager[None]]  # from the first request to the last
ARTICLE = "/v1/pools/{pool}/articles/{article:path}"


class EditorRoutes:
    """Each decodes, calls, encodes."""

    def __init__(self, service: Service, keeper: Keeper, keys: Keys, metrics: Metrics) -> None:
        self._service, self._keeper, self._keys, self._metrics = service, keeper, keys, metrics
        self._since = monotonic()
        self._article = msgspec.json.Decoder(ArticleRequest)

    def router(self, life: Life | None = None) -> Router:
        """All of them. Starlette's router alone: its application would answer errors its way."""
        told: list[tuple[str, str, Callable[[Request], Any]]] = [
            ("GET", "/v1/pools/{pool}/articles", self.articles),
            ("GET", ARTICLE, self.article),
            ("PUT", ARTICLE, self.put),
            ("DELETE", ARTICLE, self.delete),
            ("GET", "/v1/stats", self.stats),
            ("GET", "/metrics", self.metrics),
            ("GET", "/health/live", self.live),
            ("GET", "/health/ready", self.ready),
            ("GET", "/openapi.json", self.openapi),
        ]
        routes = [Route(path, call, methods=[method]) for method, path, call in told]
        return Router(routes, redirect_slashes=False, lifespan=life)

    async def articles(self, request: Request) -> Response:
        """Every article of a pool, and how it does."""
        self._allow(request, "read")
        self._service.commits.check_state()
        return _json(await article_views(self._service, request.path_params["pool"]))

    async def article(self, request: Request) -> Response:
        """One article."""
        self._allow(request, "read")
        self._service.commits.check_state()
        return _json(article_view(self._service, *_place(request)))

    async def put(self, request: Request) -> Response:
        """Add an article, or change it."""
        self._allow(request, "edit")
        limit = self._service.config.limits.body_bytes
        body = await read_body(request.scope, request.receive, limit)
        pool, article = _place(request)
        await self._service.put_article(pool, article, decoded(self._article, body))
        return _json(article_view(self._service, pool, article))

    async def delete(self, request: Request) -> Response:
        """Forget an article."""
        self._allow(request, "edit")
        pool, article = _place(request)
        await self._service.remove_article(pool, article)
        return _json(RemovedAnswer(pool, article))

    async def stats(self, request: Request) -> Response:
        """The service as a whole."""
        self._allow(request, "read")
        self._service.commits.check_state()
        return _json(stats(self._service, self._keeper, self._since))

    async def metrics(self, request: Request) -> Response:
        """For Prometheus."""
        self._allow(request, "read")
        return Response(await self._metrics.page(), media_type=PROMETHEUS)

    async def live(self, request: Request) -> Response:
        """The process answers."""
        return _json(Health("live"))

    async def ready(self, request: Request) -> Response:
        """The journal can be written: requests will be granted."""
        failing = self._service.commits.failing
        if failing is None:
            return _json(Health("ready"))
        return _json(Health("not ready", f"the journal cannot be written: {failing}"), 503)

    async def openapi(self, request: Request) -> Response:
        """What can be asked here."""
        service = self._service
        pools, dimension = tuple(service.deciders), service.state.dimension
        return _json(openapi(pools, dimension, service.config.limits))

    def _allow(self, request: Request, role: Role) -> None:
        told = request.headers.get("authorization")
        self._keys.allow(None if told is None else told.encode("latin-1"), role, monotonic())


def _place(request: Request) -> tuple[str, str]:
    try:
        article = msgspec.convert(request.path_params["article"], ArticleId)
    except msgspec.ValidationError as error:
        raise Refused(422, "bad_request", f"the article's id: {error}") from None
    try:
        article.encode()
    except UnicodeEncodeError:
        raise Refused(422, "bad_request", "the article's id is not UTF-8") from None
    return request.path_params["pool"], article


def _json(record: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(record), status, media_type="application/json")
