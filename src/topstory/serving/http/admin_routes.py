"""The other routes, for editors, operators and probes: one handler for each entry of the table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router

from topstory.serving.api.endpoints import (
    ENDPOINTS,
    IDEMPOTENCY_KEY,
    PARAMETERS,
    EditKey,
    Endpoint,
)
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import (
    ArticleRequest,
    ArticleView,
    Health,
    LeversRequest,
    LeversView,
    PolicyChanged,
    PolicyComparison,
    PolicyRequest,
    PolicyView,
    RemovedAnswer,
    Stats,
)
from topstory.serving.http.asgi import LargeBodies, json_array, read_body
from topstory.serving.http.hot_routes import decoded
from topstory.serving.http.lever_views import lever_views, levers_view
from topstory.serving.http.openapi import openapi
from topstory.serving.http.prometheus import Metrics
from topstory.serving.http.views import article_view, article_views, stats
from topstory.serving.security.api_keys import Keys
from topstory.serving.service.inputs import levers_of
from topstory.serving.service.service import Service
from topstory.serving.upkeep.keeper import Keeper
from topstory.serving.upkeep.promotion import Promotion

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]  # startup to shutdown


class AdminRoutes:
    """The handlers, named as in `ENDPOINTS`.

    A handler takes the parameters of its path, `body` if the endpoint has one, `edit` if it is
    keyed, and `key` if it is told the caller's. It returns a record, or a response if the status is
    not 200 or the body not JSON.
    """

    def __init__(self, service: Service, keeper: Keeper, keys: Keys, metrics: Metrics) -> None:
        self._service, self._keeper, self._keys, self._metrics = service, keeper, keys, metrics
        self._started = monotonic()
        self._promotion = Promotion(service)
        self._large = LargeBodies()

    def router(self, lifespan: Lifespan | None = None, more: Sequence[Route] = ()) -> Router:
        """The routes, and `more`. Starlette's application would answer errors in its own way."""
        routes = [
            Route(endpoint.route, self._route(endpoint), methods=[endpoint.method])
            for endpoint in ENDPOINTS
            if not endpoint.batch
        ]
        return Router([*routes, *more], redirect_slashes=False, lifespan=lifespan)

    async def articles(self, pool: str) -> Response:
        """The articles of a pool with their results; sent as they are computed."""
        self._service.commits.check_state()
        self._service.decider(pool)  # before the answer begins
        views = json_array(article_views(self._service, pool))
        return StreamingResponse(views, media_type="application/json")

    async def article(self, pool: str, article: str) -> ArticleView:
        """One article with its results."""
        self._service.commits.check_state()
        return await article_view(self._service, pool, article)

    async def put_article(
        self, pool: str, article: str, body: ArticleRequest, edit: str | None
    ) -> ArticleView:
        """Add or change an article."""
        await self._service.put_article(pool, article, body, edit)
        return await article_view(self._service, pool, article)

    async def remove_article(self, pool: str, article: str, edit: str | None) -> RemovedAnswer:
        """Remove an article."""
        await self._service.remove_article(pool, article, edit)
        return RemovedAnswer(pool, article)

    async def levers(self, pool: str) -> list[LeversView]:
        """The levers of a pool."""
        self._service.commits.check_state()
        return await lever_views(self._service, pool)

    async def put_levers(
        self, pool: str, article: str, body: LeversRequest, edit: str | None
    ) -> LeversView:
        """Pin, boost or limit an article."""
        await self._service.put_levers(pool, article, body, edit)
        return await levers_view(self._service, pool, article, levers_of(body))

    async def levers_cost(self, pool: str, article: str, body: LeversRequest) -> LeversView:
        """What levers would cost."""
        self._service.commits.check_state()
        return await levers_view(self._service, pool, article, levers_of(body))

    async def policy(self, pool: str) -> PolicyView:
        """The policy of a pool, and its history."""
        self._service.commits.check_state()
        return self._promotion.view(pool)

    async def compare_policy(self, pool: str, body: PolicyRequest) -> PolicyComparison:
        """Another policy beside the present one."""
        self._service.commits.check_state()
        return await self._promotion.compare(pool, body)

    async def promote_policy(
        self, pool: str, body: PolicyRequest, edit: str | None, key: str
    ) -> PolicyChanged:
        """Give a pool another policy."""
        return await self._promotion.promote(pool, body, edit, key)

    async def revert_policy(self, pool: str, edit: str | None, key: str) -> PolicyChanged:
        """Give a pool the policy that it had before."""
        return await self._promotion.revert(pool, edit, key)

    async def stats(self) -> Stats:
        """The state of the whole service."""
        self._service.commits.check_state()
        outliers = await self._metrics.outliers()
        inspection = await self._metrics.inspector.inspect()
        async with self._service.reading.piece():
            return stats(self._service, self._keeper, self._started, outliers, inspection)

    async def metrics(self) -> Response:
        """The metrics for Prometheus."""
        return Response(await self._metrics.page(), media_type=PROMETHEUS)

    async def live(self) -> Health:
        """The process answers."""
        return Health("live")

    async def ready(self) -> Response:
        """The journal can be written."""
        # Why it fails is in the log and in /v1/stats: strangers may read this.
        if self._service.commits.failing is None:
            return _json(Health("ready"))
        return _json(Health("not ready", "the journal cannot be written"), 503)

    async def openapi(self) -> dict[str, Any]:
        """The OpenAPI document."""
        service = self._service
        pools, dimension = tuple(service.deciders), service.state.dimension
        return openapi(pools, dimension, service.config.limits)

    def _route(self, endpoint: Endpoint[Any]) -> Callable[[Request], Awaitable[Response]]:
        """Authorise, decode, call the handler, encode."""
        handle = getattr(self, endpoint.name)
        decoder = None if endpoint.request is None else msgspec.json.Decoder(endpoint.request)
        limits = self._service.config.limits
        limit = limits.policy_bytes if endpoint.large else limits.body_bytes

        async def respond(request: Request) -> Response:
            name = ""
            if endpoint.role is not None:
                authorization = request.headers.get("authorization")
                header = None if authorization is None else authorization.encode("latin-1")
                name = self._keys.allow(header, endpoint.role, monotonic()).name
            with self._large.one(endpoint.large):
                return await _answered(request, name)

        async def _answered(request: Request, name: str) -> Response:
            body = None
            if decoder is not None:
                body = await read_body(request.scope, request.receive, limit)
            arguments = {name: _parameter(request, name) for name in endpoint.parameters}
            if decoder is not None and body is not None:
                arguments["body"] = decoded(decoder, body)
            if endpoint.keyed:
                arguments["edit"] = _edit_key(request)
            if endpoint.names_key:
                arguments["key"] = name
            answer = await handle(**arguments)
            return answer if isinstance(answer, Response) else _json(answer)

        return respond


def _parameter(request: Request, name: str) -> Any:
    value = request.path_params[name]
    kind = PARAMETERS.get(name)
    if kind is None:
        return value
    try:
        value.encode()
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ApiError(422, "bad_request", f"{name}: {error}") from None
    except UnicodeEncodeError:
        raise ApiError(422, "bad_request", f"{name}: not valid UTF-8") from None


def _edit_key(request: Request) -> str | None:
    value = request.headers.get(IDEMPOTENCY_KEY)
    if value is None:
        return None
    try:
        return msgspec.convert(value, EditKey)
    except msgspec.ValidationError as error:
        raise ApiError(422, "bad_request", f"{IDEMPOTENCY_KEY}: {error}") from None


def _json(record: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(record), status, media_type="application/json")
