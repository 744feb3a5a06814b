"""Clients of the service. They run in the process of whoever calls it."""

from importlib.util import find_spec

if find_spec("httpx") is None:
    raise ImportError("topstory.Client needs httpx: pip install 'topstory[client]'", name="httpx")

from topstory.serving.client.async_client import AsyncClient
from topstory.serving.client.client import Client

__all__ = ["AsyncClient", "Client"]
