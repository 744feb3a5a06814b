"""The rate limit of a key, across workers and slow requests."""

from __future__ import annotations

import pytest

from topstory.serving.api.errors import ApiError
from topstory.serving.config.schema import KeyConfig
from topstory.serving.security.api_keys import Keys, new_key

_, DIGEST = new_key()
CONFIGURED = [KeyConfig(name="all", sha256=DIGEST)]


def test_a_request_that_began_earlier_costs_its_key_no_more_than_one_token() -> None:
    """Its body was slow, or another worker was faster."""
    buckets = ([10.0], [0.0])
    one, other = (Keys(CONFIGURED, rate=1000.0, burst=10, buckets=buckets) for _ in range(2))
    (key,) = one._keys
    one.spend(key, now=100.0, requests=1)
    other.spend(key, now=99.0, requests=1)
    assert buckets == ([8.0], [100.0])
    # Nor does it add tokens twice.
    one.spend(key, now=100.0, requests=8)
    with pytest.raises(ApiError, match="1000 requests per second"):
        one.spend(key, now=100.0, requests=1)
    one.spend(key, now=100.003, requests=2)
