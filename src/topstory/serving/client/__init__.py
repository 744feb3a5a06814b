"""Clients of the service; they run in the process of whoever calls it."""

from topstory.serving.client.async_client import AsyncClient
from topstory.serving.client.client import Client

__all__ = ["AsyncClient", "Client"]
