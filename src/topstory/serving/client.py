"""A client of the service, with nothing but the standard library under it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit

from topstory.serving import calls
from topstory.serving.calls import AGAIN, Call, User, pause
from topstory.serving.messages import (
    Acknowledged,
    ArticleRequest,
    ArticleView,
    Decision,
    RemovedAnswer,
    Stats,
)
from topstory.serving.refusals import Refused

T = TypeVar("T")


class Client:
    """Asks a service, and asks again where that is safe: every call may be repeated.

    A decision that is asked for twice, because the first answer was lost, is the same decision;
    feedback counts once. What the service refuses is raised as `Refused`, with its `reason`.
    A client may be shared by threads: each has a connection of its own.

    Args:
        url: such as http://127.0.0.1:8000.
        key: an API key.
        timeout: seconds to wait for an answer.
        retries: how often to try again after a lost connection, 429 or 503.

    >>> client = Client("http://127.0.0.1:8000", key="ts_…")
    >>> client
    <Client of http://127.0.0.1:8000>
    """

    def __init__(self, url: str, key: str, *, timeout: float = 5.0, retries: int = 4) -> None:
        self._url, self._retries, self._timeout = url.rstrip("/"), retries, timeout
        self._parts = urlsplit(self._url)
        if self._parts.scheme not in ("http", "https") or not self._parts.hostname:
            raise ValueError(f"a service's address is like http://127.0.0.1:8000, got {url!r}")
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"<Client of {self._url}>"

    def decide(
        self,
        user: User,
        *,
        pool: str | None = None,
        visitor: str | None = None,
        exclude: Sequence[str] = (),
        slots: int = 1,
        request: str | None = None,
    ) -> Decision:
        """Which article to show to this user."""
        call = calls.decide(
            user, pool=pool, visitor=visitor, exclude=exclude, slots=slots, request=request
        )
        return self._ask(call)

    def feedback(self, decision: str, payoff: float) -> Acknowledged:
        """What a decision paid; on disk when this returns."""
        return self._ask(calls.feedback(decision, payoff))

    def put_article(self, pool: str, article: str, said: ArticleRequest) -> ArticleView:
        """Add an article, or change it."""
        return self._ask(calls.put_article(pool, article, said))

    def remove_article(self, pool: str, article: str) -> None:
        """Forget an article."""
        call: Call[RemovedAnswer] = calls.remove_article(pool, article)
        self._send(call)

    def article(self, pool: str, article: str) -> ArticleView:
        """One article, and how it does."""
        return self._ask(calls.article(pool, article))

    def articles(self, pool: str) -> list[ArticleView]:
        """All articles of a pool, and how they do."""
        return self._ask(calls.articles(pool))

    def stats(self) -> Stats:
        """The service as a whole."""
        return self._ask(calls.stats())

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, call: Call[T]) -> T:
        answer = self._send(call)
        assert answer is not None  # only a removal may have been done already
        return answer

    def _send(self, call: Call[T]) -> T | None:
        for tried in range(self._retries + 1):
            last = tried == self._retries
            try:
                status, body = self._once(call)
            except (OSError, HTTPException) as error:
                self.close()
                if last:
                    raise ConnectionError(f"{self._url}: {error}") from error
            else:
                if status not in AGAIN or last:
                    return call.answer(status, body, repeated=tried > 0)
            time.sleep(pause(tried))
        raise Refused(503, "never", "a loop that always returns has ended")

    def _once(self, call: Call[T]) -> tuple[int, bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
            assert self._parts.hostname is not None
            connection = kind(self._parts.hostname, self._parts.port, timeout=self._timeout)
            self._local.connection = connection
        connection.request(call.method, self._parts.path + call.path, call.body, self._headers)
        response = connection.getresponse()
        return response.status, response.read()
