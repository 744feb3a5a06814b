"""A service with both pages, and a browser that visits it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page
from tests.serving.processes import Served

WIDTHS = (390, 820, 1440)


class Visit:
    """A browser of its own, with what its pages complained about."""

    def __init__(self, browser: Browser, service: Served, **options: Any) -> None:
        self.context: BrowserContext = browser.new_context(base_url=service.url, **options)
        self.context.set_default_timeout(15_000)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._said)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _said(self, message: Any) -> None:
        # Chromium itself reports answers like 401, which some tests ask for.
        if message.type == "error" and "status of 4" not in message.text:
            self.complaints.append(message.text)

    def sign_in(self, key: str, path: str = "/studio") -> Page:
        """Through the page itself."""
        self.page.goto(path)
        self.page.fill("#key", key)
        self.page.click("button[type=submit]")
        self.page.wait_for_selector("#link[data-state=good]")
        return self.page


@contextmanager
def visiting(browser: Browser, service: Served, **options: Any) -> Iterator[Visit]:
    """A visit after which no page complained, and none asked another site for anything."""
    visit = Visit(browser, service, **options)
    try:
        yield visit
        assert visit.complaints == []
        assert all(url.startswith(service.url) for url in visit.requests)
    finally:
        visit.context.close()


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def shifted(page: Page) -> float:
    """How much has moved by itself since the page was opened: the sum of its layout shifts."""
    return float(
        page.evaluate(
            """() => new Promise((done) => {
              new PerformanceObserver((list) =>
                done(list.getEntries().reduce((sum, each) => sum + each.value, 0)),
              ).observe({ type: "layout-shift", buffered: true });
              setTimeout(() => done(0), 100);
            })"""
        )
    )
