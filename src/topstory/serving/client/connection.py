"""How both clients set up httpx."""

from __future__ import annotations

import ssl
from typing import Any
from urllib.parse import urlsplit

import httpx

from topstory.serving.client.calls import Call

MAX_IDLE_CONNECTIONS = 100


class ServiceAddress:
    """The address of a service, and the key to it.

    >>> ServiceAddress("https://news.example/topstory/", "ts_…").url
    'https://news.example/topstory'
    """

    def __init__(self, url: str, key: str) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the address must be like http://127.0.0.1:8000, got {url!r}")
        self._prefix = parts.path
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        # The system's certificates; they take 20 ms to load, so only where they are needed.
        self._verify = ssl.create_default_context() if parts.scheme == "https" else False

    def options(self) -> dict[str, Any]:
        """The arguments of `httpx.Client` and `httpx.AsyncClient`."""
        return {
            "headers": self._headers,
            "verify": self._verify,
            "trust_env": False,  # no proxies: a key is sent to its service alone
            "limits": httpx.Limits(
                max_connections=None,
                max_keepalive_connections=MAX_IDLE_CONNECTIONS,
                keepalive_expiry=None,  # the service closes idle connections
            ),
        }

    def request(self, call: Call[Any], timeout: httpx.Timeout, trace: Any) -> dict[str, Any]:
        """The arguments of `request` for a call; `trace` is called with what httpx does."""
        # httpx would normalise the path, but an article's id may be `..`.
        target = (self._prefix + call.path).encode()
        return {
            "method": call.endpoint.method,
            "url": self.url,
            "content": call.body,
            "headers": call.headers,
            "timeout": timeout,
            "extensions": {"target": target, "trace": trace},
        }
