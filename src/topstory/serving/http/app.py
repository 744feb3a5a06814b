"""The ASGI application: the two hot routes first, then Starlette's."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import Any

from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from topstory.serving.api.errors import Refused
from topstory.serving.http.asgi import Gone, refuse
from topstory.serving.http.hot_routes import Answering, HotRoute, decide_route, feedback_route
from topstory.serving.http.metrics import Requests
from topstory.serving.security.api_keys import Keys

log = logging.getLogger("topstory.serving")


class App:
    """Finds the route, counts the request, and turns every refusal into an answer.

    What `rest` answers is not counted here where it is counted elsewhere.
    """

    def __init__(
        self, service: Answering, keys: Keys, rest: ASGIApp, requests: Requests, counts: bool = True
    ) -> None:
        self.requests, self._rest, self._counts = requests, rest, counts
        self.hot: dict[str, HotRoute[Any]] = {
            "/v1/decide": decide_route(service, keys),
            "/v1/feedback": feedback_route(service, keys),
        }

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
                began = perf_counter()  # how slowly it was sent is not our time
            return message

        hot = self.hot.get(scope["path"])
        try:
            if hot is None:
                status = await self._answer(scope, timed, send)
            elif scope["method"] != "POST":
                raise Refused(405, "wrong_method", f"{scope['path']} takes POST")
            else:
                await hot(scope, timed, send)
                status = 200
        except Gone:
            return
        except Refused as refused:
            status = refused.status
            await refuse(send, refused)
        except Exception:
            # Whatever it was, nobody outside learns more than that it was our fault.
            log.exception("a request failed unexpectedly")
            status = 500
            await refuse(send, Refused(500, "internal_error", "the service made a mistake"))
        if hot is not None or self._counts:
            self.requests.count(scope["path"] if hot else "other", status, perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> int:
        """By one of the other routes; the status of the answer."""
        status = 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        scope["app"] = self  # then the router raises what it cannot answer
        try:
            await self._rest(scope, receive, noted)
        except HTTPException as error:
            raise _of_starlette(error) from None
        return status


def with_cors(app: ASGIApp, origins: tuple[str, ...]) -> ASGIApp:
    """The application, for pages of these sites too."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=["GET", "POST", "PUT", "DELETE"],
        allow_headers=["authorization", "content-type"],
        max_age=600,
    )


def _of_starlette(error: HTTPException) -> Refused:
    if error.status_code == 404:
        return Refused(404, "unknown_path", "there is nothing at this path")
    if error.status_code == 405:
        return Refused(405, "wrong_method", "this path does not take this method")
    return Refused(error.status_code, "refused", str(error.detail))
