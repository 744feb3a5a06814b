"""A key's rate, whoever counts it and however late."""

from __future__ import annotations

import pytest

from topstory.serving.api.errors import Refused
from topstory.serving.config.schema import KeyConfig
from topstory.serving.security.api_keys import Keys, new_key

_, DIGEST = new_key()
TOLD = [KeyConfig(name="all", sha256=DIGEST)]


def test_a_request_that_began_earlier_is_not_held_against_its_key() -> None:
    """Its body came slowly, or another worker was faster."""
    left = ([10.0], [0.0])
    one, other = (Keys(TOLD, rate=1000.0, burst=10, left=left) for _ in range(2))
    (key,) = one._keys
    one.spend(key, now=100.0, requests=1)
    other.spend(key, now=99.0, requests=1)
    assert left == ([8.0], [100.0])
    # Nor does it earn anything twice.
    one.spend(key, now=100.0, requests=8)
    with pytest.raises(Refused, match="1000 requests a second"):
        one.spend(key, now=100.0, requests=1)
    one.spend(key, now=100.003, requests=2)
