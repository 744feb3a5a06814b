"""When to retry a call, and how long to wait: the same for both clients."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, TypeVar

import httpx

from topstory.serving.api.endpoints import Endpoint
from topstory.serving.client.calls import Call

T = TypeVar("T")

RETRIED_STATUSES = (408, 429, 503)
ANSWER_SECONDS = 5.0  # to wait for a connection, or for an answer
COMPILE_SECONDS = 120.0  # to wait for an answer if the service may have to compile first
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds between tries


def retry_after(response: httpx.Response) -> float:
    """The pause in seconds that the service asks for; dates are ignored.

    >>> retry_after(httpx.Response(503, headers={"Retry-After": "7"}))
    7.0
    """
    header: str = response.headers.get("Retry-After", "")
    return float(header) if header.isdecimal() else 0.0


@dataclass(frozen=True)
class RetryPolicy:
    """Timeouts, the number of retries, and the pauses between them.

    Pauses grow, and are spread at random: a thousand clients that lost the same service do not
    return at the same moment. Four retries take at least 1.5 s. That is long enough for a service
    which cannot write its journal and tries again after a second.

    >>> policy = RetryPolicy(None, retries=4, random=Random(0))
    >>> [round(policy.pause(tries), 2) for tries in range(4)]
    [0.27, 0.5, 0.74, 1.21]
    """

    timeout: float | None
    retries: int
    random: Random = field(default_factory=Random)

    @property
    def connect_seconds(self) -> float:
        """How long to wait for a connection."""
        return ANSWER_SECONDS if self.timeout is None else self.timeout

    def answer_seconds(self, endpoint: Endpoint[Any]) -> float:
        """How long to wait for an answer."""
        if self.timeout is not None:
            return self.timeout
        return COMPILE_SECONDS if endpoint.compiles else ANSWER_SECONDS

    def pause(self, tries: int, requested: float = 0.0) -> float:
        """Seconds until the next try: at least what the service requests, within reason."""
        luck = self.random.random()
        own = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**tries) * (0.5 + luck)
        return max(own, min(LONGEST_PAUSE, requested) * (1.0 + luck / 2))


class RetriedCall(Generic[T]):
    """One call, from its first try to its answer."""

    def __init__(self, call: Call[T], policy: RetryPolicy) -> None:
        self.call, self._policy = call, policy
        seconds = policy.answer_seconds(call.endpoint)
        self.total_seconds = policy.connect_seconds + seconds
        self.timeout = httpx.Timeout(seconds, connect=policy.connect_seconds, pool=None)
        self.done = False
        self.pause = 0.0  # seconds before the next try
        self.answer: T | None = None  # None at the end: an earlier try had succeeded
        self.sent = 0  # how often the request was sent: the service may have seen it
        self.connected = False  # whether the last try opened a new connection
        self._tries = 0

    def trace(self, event: str) -> None:
        """Note what httpx does."""
        if event == "connection.connect_tcp.started":
            self.connected = True
        elif event == "http11.send_request_headers.started":
            self.sent += 1

    def lost_idle_connection(self, error: httpx.RequestError) -> bool:
        """Whether a kept connection failed because the service had closed it while it was idle."""
        closed = isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError)
        return closed and not self.connected and self.call.endpoint.repeatable

    def receive(self, response: httpx.Response) -> None:
        """Take a response. Raises its error, unless the call will be retried."""
        status = response.status_code
        if status in RETRIED_STATUSES and self._retry(retry_after(response)):
            return
        self.answer = self.call.answer(status, response.content, repeated=self.sent > 1)
        self.done = True

    def fail(self, error: Exception, url: str) -> None:
        """Note that a try got no response. Raises if it was the last, or must not be repeated."""
        repeatable = self.call.endpoint.repeatable or not self.sent
        if not self._retry() or not repeatable:
            timed_out = isinstance(error, httpx.TimeoutException | TimeoutError)
            reason = "timed out" if timed_out else str(error) or type(error).__name__
            raise ConnectionError(f"{url}: {reason} (tried {self._tries} times)") from error

    def _retry(self, requested: float = 0.0) -> bool:
        self._tries += 1
        self.pause = self._policy.pause(self._tries - 1, requested)
        return self._tries <= self._policy.retries
