"""The ASGI application: the hot routes first, then the rest."""

from __future__ import annotations

from time import perf_counter

from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from topstory.serving.api.endpoints import ENDPOINTS, METHODS, allowed_methods
from topstory.serving.api.errors import ApiError
from topstory.serving.http.asgi import ClientDisconnected, send_error
from topstory.serving.http.hot_routes import DecisionService, hot_routes
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.security.api_keys import Keys
from topstory.serving.service.replies import unexpected


class App:
    """Finds the route, counts the request, and turns every exception into an error response.

    With `count_rest=False` the requests that `rest` answers are not counted: the learner counts
    them.
    """

    def __init__(
        self,
        service: DecisionService,
        keys: Keys,
        rest: ASGIApp,
        requests: RequestCounts,
        count_rest: bool = True,
    ) -> None:
        self.requests, self._rest, self._count_rest = requests, rest, count_rest
        self.hot = hot_routes(service, keys)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._rest(scope, receive, send)
            return
        began = perf_counter()

        async def timed() -> Message:
            nonlocal began
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                began = perf_counter()  # a slow upload is not our time
            return message

        hot = self.hot.get(scope["path"])
        try:
            if hot is None:
                status = await self._answer(scope, timed, send)
            elif scope["method"] != hot.method:
                raise _wrong_method(scope["path"])
            else:
                await hot(scope, timed, send)
                status = 200
        except ClientDisconnected:
            return
        except ApiError as error:
            status = error.status
            await send_error(send, error)
        except Exception:
            failure = unexpected()
            status = failure.status
            await send_error(send, failure)
        if hot is not None or self._count_rest:
            self.requests.count(scope["path"] if hot else "other", status, perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Answer by one of the other routes; returns the status."""
        status = 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        scope["app"] = self  # so that the router raises HTTPException instead of answering itself
        try:
            await self._rest(scope, receive, noted)
        except HTTPException as error:
            raise _from_starlette(error, scope["path"]) from None
        return status


def with_cors(app: ASGIApp, origins: tuple[str, ...]) -> ASGIApp:
    """The application, callable from pages of these sites too."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=sorted({each.method for each in ENDPOINTS}, key=METHODS.index),
        allow_headers=["authorization", "content-type", "idempotency-key"],
        max_age=600,
    )


def _from_starlette(error: HTTPException, path: str) -> ApiError:
    if error.status_code == 404:
        return ApiError(404, "unknown_path", "there is nothing at this path")
    if error.status_code == 405:
        return _wrong_method(path)
    return ApiError(error.status_code, "refused", str(error.detail))


def _wrong_method(path: str) -> ApiError:
    allowed = allowed_methods(path)
    return ApiError(405, "wrong_method", f"{path} takes {' or '.join(allowed)}", allowed)
