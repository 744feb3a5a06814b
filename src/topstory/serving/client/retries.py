"""How long a client waits, and when it asks again: both clients do as this says."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Generic, TypeVar

from topstory.serving.client.endpoints import Call

T = TypeVar("T")

AGAIN = (408, 429, 503)  # worth another try
ANSWER, EDIT = 5.0, 120.0  # seconds to wait for an answer: an edit may need the compiler first
FIRST_WAIT, LONGEST_WAIT = 0.2, 10.0  # seconds between tries


@dataclass(frozen=True)
class Heard:
    """An answer as it came."""

    status: int
    body: bytes
    retry_after: str = ""  # the header

    @property
    def wished(self) -> float:
        """Seconds that the service asks to be left alone for; a date is not understood."""
        return float(self.retry_after) if self.retry_after.isdecimal() else 0.0


@dataclass(frozen=True)
class Patience:
    """Seconds to wait for an answer, how often to try again, and the luck of pauses.

    Pauses grow, and are spread at random: a thousand clients that lost the same service do not
    come back at the same moment. With four retries they take 1.5 s at the very least, so that a
    service that could not write, and tries after a second whether it can again, is waited for.

    >>> patience = Patience(None, retries=4, random=Random(0))
    >>> [round(patience.pause(tried), 2) for tried in range(4)]
    [0.27, 0.5, 0.74, 1.21]
    """

    timeout: float | None
    retries: int
    random: Random = field(default_factory=Random)

    @property
    def connecting(self) -> float:
        """Seconds to wait for a connection."""
        return ANSWER if self.timeout is None else self.timeout

    def answering(self, call: Call[T]) -> float:
        """Seconds to wait for an answer."""
        if self.timeout is not None:
            return self.timeout
        return EDIT if call.method == "PUT" else ANSWER

    def pause(self, tried: int, wished: float = 0.0) -> float:
        """Seconds until the next try: never less than the service wishes, within reason."""
        luck = self.random.random()
        own = min(LONGEST_WAIT, FIRST_WAIT * 2.0**tried) * (0.5 + luck)
        return max(own, min(LONGEST_WAIT, wished) * (1.0 + luck / 2))


class Asking(Generic[T]):
    """One call, from its first try to its answer."""

    def __init__(self, call: Call[T], patience: Patience) -> None:
        self.call, self._patience = call, patience
        self.seconds = patience.answering(call)
        self.over = False
        self.pause = 0.0  # seconds before the next try
        self.answer: T | None = None  # None at the end: it was done by an earlier try
        self.sent = 0  # how often it went out: the service may know it
        self._tried = 0

    def heard(self, heard: Heard) -> None:
        """An answer came; what it refuses is raised, unless it is worth another try."""
        if heard.status in AGAIN and self._again(heard.wished):
            return
        self.answer = self.call.answer(heard.status, heard.body, repeated=self.sent > 1)
        self.over = True

    def lost(self, error: Exception, url: str) -> None:
        """None came; if this was the last try that is raised."""
        if not self._again():
            said = str(error) or type(error).__name__
            raise ConnectionError(f"{url}: {said} (tried {self._tried} times)") from error

    def _again(self, wished: float = 0.0) -> bool:
        self._tried += 1
        self.pause = self._patience.pause(self._tried - 1, wished)
        return self._tried <= self._patience.retries
