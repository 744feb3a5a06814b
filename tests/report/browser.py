"""A real browser to test the report in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (  # no sandbox: tests may run as root, and open nothing but their own files
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium without a window; a test that needs it fails where there is none."""
    with sync_playwright() as playwright:
        found = next((path for name in NAMES if (path := shutil.which(name))), None)
        path = found or playwright.chromium.executable_path
        if not Path(path).exists():
            pytest.fail("no Chromium found; `make test` installs one")
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()
