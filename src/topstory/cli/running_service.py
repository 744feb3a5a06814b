"""A running service, as its configuration says where it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from topstory.serving.api.errors import ApiError
from topstory.serving.client import Client
from topstory.serving.config.schema import Config


@contextmanager
def running_service(settings: Config, key_file: Path) -> Iterator[Client]:
    """A client of the service; ValueError if it refuses something."""
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host
    key = key_file.read_text("utf-8").strip()
    try:
        with Client(f"http://{host}:{settings.port}", key, timeout=600) as client:
            yield client
    except ApiError as error:
        raise ValueError(f"the service refused it: {error}") from None
