"""The traffic split: which bucket a visitor is in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from hashlib import blake2b

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
        digests, buckets = [], []
        for visitor in visitors:  # for every decision: so with few calls
            hashed = self._hash.copy()
            hashed.update(visitor.encode())
            digests.append(digest := hashed.digest())
            place = (int.from_bytes(digest, "little") >> 11) * 2.0**-53  # in [0, 1)
            buckets.append(bisect_right(self._edges, place))
        return digests, buckets
