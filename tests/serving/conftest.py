"""A service that several files share: starting one takes longer than what most tests ask of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from tests.serving.postgres import database, postgres
from tests.serving.processes import Served


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The demo's twenty articles; whoever adds one takes it away again."""
    with Served(tmp_path_factory.mktemp("demo"), demo=True, context=6) as service:
        yield service
    assert "Traceback" not in service.errors()


_databases = count()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A PostgreSQL server."""
    with postgres() as url:
        yield url


@pytest.fixture
def url(server: str) -> Iterator[str]:
    """An empty database."""
    with database(server, f"journal_{next(_databases)}") as fresh:
        yield fresh
