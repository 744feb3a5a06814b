"""One service and one browser for all tests of the pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.report.browser import chromium
from tests.serving.processes import Served


# Not for the whole session: while it is there, no other test can run an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def paged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The demo's twenty articles, on the front page; and a pool that nobody visits."""
    folder = tmp_path_factory.mktemp("paged")
    changes: dict[str, Any] = {
        "pools": {"front": {}, "quiet": {}},
        "pages": {"today": True},
        "limits": {"queue_seconds": 60.0},  # a busy machine refuses nobody
    }
    with Served(folder, demo=True, context=6, **changes) as service:
        yield service
    assert "Traceback" not in service.errors()
