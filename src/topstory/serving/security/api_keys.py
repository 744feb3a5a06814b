"""API keys, their roles and their rate limits. Only hashes of the keys are stored."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from topstory.serving.api.endpoints import Role
from topstory.serving.api.errors import ApiError
from topstory.serving.config.schema import KeyConfig


@dataclass(eq=False)
class Key:
    """A key: its name and its roles."""

    name: str
    digest: bytes
    roles: frozenset[Role]
    place: int  # of its token bucket


class MutableFloats(Protocol):
    """A list of numbers, or memory shared by several processes."""

    def __getitem__(self, place: int, /) -> float:
        """The number at a place."""
        ...

    def __setitem__(self, place: int, value: float, /) -> None:
        """Set the number at a place."""
        ...


TokenBuckets = tuple[
    MutableFloats, MutableFloats
]  # by key: its tokens, and when they were last counted


# The key that a session's token stands for, among these keys.
FindSession = Callable[[str, Sequence["Key"]], Key | None]


class Keys:
    """All keys of a service.

    A key is 256 random bits, so a plain SHA-256 of it cannot be reversed. A slow hash protects
    passwords that people choose; here it would only slow down every request.
    """

    def __init__(
        self,
        configured: Sequence[KeyConfig],
        rate: float,
        burst: int,
        buckets: TokenBuckets | None = None,
        sessions: FindSession | None = None,
    ) -> None:
        self._find_session = sessions
        self._rate, self._burst = rate, float(burst)
        count = len(configured)
        self._tokens, self._counted = buckets or ([float(burst)] * count, [0.0] * count)
        self._keys = [
            Key(key.name, bytes.fromhex(key.sha256), frozenset(key.roles), place)
            for place, key in enumerate(configured)
        ]

    @property
    def all(self) -> Sequence[Key]:
        """Every key."""
        return self._keys

    def allow(self, header: bytes | None, role: Role, now: float) -> Key:
        """Authorise a request and count it; `now` is on the monotonic clock."""
        key = self.recognise(header, role)
        self.spend(key, now, 1)
        return key

    def recognise(self, header: bytes | None, role: Role | None = None) -> Key:
        """The key of an Authorization header, or of a session of the studio, if it has the role.

        Not for the hot routes, where a connection's header is checked once: a session expires.
        """
        if self._find_session is None or header is None or header[:8].lower() != b"session ":
            key: Key | None = self.identify(header)
        else:
            key = self._find_session(header[8:].strip().decode("latin-1"), self._keys)
        if key is None:
            raise ApiError(401, "session_expired", "the session has ended: sign in again")
        if role is not None:
            _check_role(key, role)
        return key

    def authorise(self, header: bytes | None, role: Role) -> Key:
        """The key of an Authorization header, if it has the role."""
        key = self.identify(header)
        _check_role(key, role)
        return key

    def identify(self, header: bytes | None) -> Key:
        """The key of an Authorization header, if it is known."""
        if header is None or header[:7].lower() != b"bearer ":
            raise ApiError(401, "no_key", "send `Authorization: Bearer KEY`")
        digest = sha256(header[7:].strip()).digest()
        found = None
        for key in self._keys:  # all of them: the time taken reveals nothing
            if hmac.compare_digest(digest, key.digest):
                found = key
        if found is None:
            raise ApiError(401, "unknown_key", "unknown API key")
        return found

    def spend(self, key: Key, now: float, requests: int) -> None:
        """Take tokens for so many requests from the key's bucket; raises if there are too few."""
        place = key.place
        # A request that began before the last one was counted adds no tokens: its body was slow,
        # or another worker was faster.
        tokens, passed = self._tokens[place], now - self._counted[place]
        if passed > 0.0:
            tokens += passed * self._rate
            if tokens > self._burst:
                tokens = self._burst
            self._counted[place] = now
        if tokens < requests and tokens < self._burst:
            self._tokens[place] = tokens
            raise ApiError(
                429, "rate_limit", f"this key is limited to {self._rate:g} requests per second"
            )
        self._tokens[place] = tokens - requests


def _check_role(key: Key, role: Role) -> None:
    if role not in key.roles:
        raise ApiError(403, "wrong_role", f"this key does not have the role {role!r}")


def new_key() -> tuple[str, str]:
    """A new key, and its hash for the configuration.

    >>> key, digest = new_key()
    >>> key[:3], len(digest)
    ('ts_', 64)
    """
    key = f"ts_{secrets.token_urlsafe(32)}"
    return key, sha256(key.encode()).hexdigest()
