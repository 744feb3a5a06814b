"""A service that several files share: starting one takes longer than what most tests ask of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.serving.processes import Served


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The demo's twenty articles; whoever adds one takes it away again."""
    with Served(tmp_path_factory.mktemp("demo"), demo=True, context=6) as service:
        yield service
    assert "Traceback" not in service.errors()
