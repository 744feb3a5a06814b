"""API keys: who may do what. Only hashes are known here."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from topstory.serving.api.errors import Refused
from topstory.serving.config.schema import KeyConfig, Role


@dataclass(eq=False)
class Key:
    """A key: its name and its roles."""

    name: str
    digest: bytes
    roles: frozenset[Role]
    place: int  # where its rate is kept


class Numbers(Protocol):
    """A list of numbers, or memory that several processes share."""

    def __getitem__(self, place: int, /) -> float:
        """One of them."""
        ...

    def __setitem__(self, place: int, value: float, /) -> None:
        """Another value."""
        ...


Left = tuple[Numbers, Numbers]  # of each key: its tokens, and when they were counted


class Keys:
    """All keys of a service.

    A key is 256 random bits, so a plain SHA-256 of it cannot be guessed backwards; a slow hash
    would protect words that people choose, and cost every request.
    """

    def __init__(
        self, told: Sequence[KeyConfig], rate: float, burst: int, left: Left | None = None
    ) -> None:
        self._rate, self._burst = rate, float(burst)
        self._tokens, self._seen = left or ([float(burst)] * len(told), [0.0] * len(told))
        self._keys = [
            Key(key.name, bytes.fromhex(key.sha256), frozenset(key.roles), place)
            for place, key in enumerate(told)
        ]

    def allow(self, header: bytes | None, role: Role, now: float) -> Key:
        """The key of an Authorization header, if it may; `now` is in steady seconds."""
        key = self.entitled(header, role)
        self.spend(key, now, 1)
        return key

    def entitled(self, header: bytes | None, role: Role) -> Key:
        """The key of an Authorization header, if it has the role."""
        key = self.find(header)
        if role not in key.roles:
            raise Refused(403, "wrong_role", f"this key may not {role}")
        return key

    def find(self, header: bytes | None) -> Key:
        """The key of an Authorization header, if it is known."""
        if header is None or header[:7].lower() != b"bearer ":
            raise Refused(401, "no_key", "send `Authorization: Bearer KEY`")
        digest = sha256(header[7:].strip()).digest()
        found = None
        for key in self._keys:  # all of them: how long it takes tells nothing
            if hmac.compare_digest(digest, key.digest):
                found = key
        if found is None:
            raise Refused(401, "unknown_key", "this key is not known here")
        return found

    def spend(self, key: Key, now: float, requests: int) -> None:
        """A token bucket: `rate` a second, and `burst` at once."""
        place = key.place
        # One that began before another was counted has nothing to add: its body came slowly, or
        # another worker was faster.
        passed = max(0.0, now - self._seen[place])
        tokens = min(self._burst, self._tokens[place] + passed * self._rate)
        if passed:
            self._seen[place] = now
        if tokens < min(requests, self._burst):
            self._tokens[place] = tokens
            raise Refused(429, "rate_limit", f"this key may make {self._rate:g} requests a second")
        self._tokens[place] = tokens - requests


def new_key() -> tuple[str, str]:
    """A new key, and the hash that a configuration has of it.

    >>> key, digest = new_key()
    >>> key[:3], len(digest)
    ('ts_', 64)
    """
    key = f"ts_{secrets.token_urlsafe(32)}"
    return key, sha256(key.encode()).hexdigest()
