"""A Ray cluster that is not there is reported in seconds, not after minutes."""

from __future__ import annotations

import socket
import time

import pytest
import ray

from topstory.engines import engine


@pytest.fixture
def address() -> str:
    """Where nobody listens; and no session of Ray is left that would be used instead."""
    ray.shutdown()
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["", "ray://"])
@pytest.mark.parametrize("named", ["argument", "RAY_ADDRESS"])
def test_a_cluster_that_is_not_there_is_reported_within_seconds(
    named: str, scheme: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"{scheme}{address}"
    if named == "RAY_ADDRESS":
        monkeypatch.setenv(named, address)
    began = time.monotonic()
    with pytest.raises(ConnectionError, match=f"no Ray cluster answers at {address} .*refused"):
        engine("ray", address=address if named == "argument" else None)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("address", ["head:999999", "no-such-host.invalid:6379"])
def test_an_address_that_leads_nowhere_is_reported(address: str) -> None:
    ray.shutdown()
    with pytest.raises(ConnectionError, match=f"no Ray cluster answers at {address}"):
        engine("ray", address=address)
