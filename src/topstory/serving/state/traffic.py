"""The traffic split: which bucket a visitor is in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct

import numpy as np

from topstory.kernels.buckets import DEPLOYMENT, LEARNING, UNIFORM
from topstory.kernels.compilation import Floats
from topstory.serving.api.messages import BUCKETS
from topstory.serving.config.schema import TrafficConfig

assert (BUCKETS[LEARNING], BUCKETS[DEPLOYMENT], BUCKETS[UNIFORM]) == BUCKETS


class Traffic:
    """The shares of the buckets, and a visitor's bucket: the same for the same id, in any process.

    With a secret, nobody else can tell which bucket an id gets.

    >>> traffic = Traffic(TrafficConfig(learning=0.2, deployment=0.7, uniform=0.1), "front")
    >>> numbers = [traffic.bucket(f"visitor-{i}") for i in range(10_000)]
    >>> [round(numbers.count(bucket) / 10_000, 1) for bucket in range(3)]
    [0.2, 0.7, 0.1]
    """

    def __init__(self, config: TrafficConfig, pool: str, secret: str | None = None) -> None:
        self.shares: Floats = np.array([config.learning, config.deployment, config.uniform])
        self.teaches = (True, False, config.uniform_teaches)
        # Where one bucket ends and the next begins, in the order of their codes.
        self._edges: list[float] = np.cumsum(self.shares)[:UNIFORM].tolist()
        if config.uniform == 0:
            self._edges[DEPLOYMENT] = 1.0  # without a rounding error
        salt = blake2b(pool.encode(), digest_size=16).digest()  # pools split independently
        key = blake2b((secret or "").encode()).digest() if secret else b""
        self._hash = blake2b(digest_size=8, salt=salt, key=key)

    def digest(self, visitor: str) -> bytes:
        """The visitor's pseudonym: without the secret, it cannot be found from the id."""
        return self.split([visitor])[0][0]

    def bucket(self, visitor: str) -> int:
        """The bucket's number, by the visitor's id, or the request's where visitors have none."""
        return self.split([visitor])[1][0]

    def split(self, visitors: Iterable[str]) -> tuple[list[bytes], list[int]]:
        """The pseudonyms and buckets of some visitors."""
        digests, copy = [], self._hash.copy
        for visitor in visitors:  # for every decision: so with few calls
            hashed = copy()
            hashed.update(visitor.encode())
            digests.append(hashed.digest())
        edges, numbers = self._edges, Struct(f"<{len(digests)}Q").unpack(b"".join(digests))
        # A number's first 53 bits as a place in [0, 1).
        return digests, [bisect_right(edges, (number >> 11) * 2.0**-53) for number in numbers]
