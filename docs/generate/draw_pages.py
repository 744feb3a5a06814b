"""Take the pictures of the pages, from the live demo itself: `make pictures`.

It runs `topstory demo --live` for some minutes, and needs Chromium.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Page
from tests.report.browser import chromium

IMAGES = Path(__file__).parents[1] / "images"
SECONDS = 150.0  # of visitors before the pictures
COMMAND = (sys.executable, "-m", "topstory.cli", "demo", "--live", "--no-browser", "--port", "0")


def main() -> None:
    """Write docs/images/live.png, studio-articles.png, studio-what-if.png and why.png."""
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        url, _, key = lines[2].split()[-1].partition("/demo#")
        time.sleep(SECONDS)
        with chromium() as browser:
            page = browser.new_page(viewport={"width": 1720, "height": 1000})
            page.goto(f"{url}/demo#{key}")
            studio = page.frame_locator("#studio")
            studio.locator("#chart svg").wait_for()
            page.frame_locator("iframe").first.locator("nav.people a").nth(2).click()
            page.wait_for_timeout(2500)
            page.screenshot(path=IMAGES / "live.png")
            page.set_viewport_size({"width": 1280, "height": 900})
            page.goto(f"{url}/studio/articles")
            page.wait_for_selector("#articles tbody tr")
            page.screenshot(path=IMAGES / "studio-articles.png")
            _why(page, url)
            _what_if(page, url)
    finally:
        process.terminate()
        process.wait(30)


def _why(page: Page, url: str) -> None:
    """The drawer of somebody who is in deployment, and so gets what the model likes best."""
    for _ in range(50):
        page.goto(f"{url}/?as=1&new")
        page.click("#why-open")
        page.wait_for_selector("#why .why")
        if page.locator("#why .tag.deployment").count():
            break
    page.wait_for_timeout(500)
    page.screenshot(path=IMAGES / "why.png")


def _what_if(page: Page, url: str) -> None:
    """Other policies, evaluated on the visits so far."""
    page.set_default_timeout(300_000)  # its process has the lowest priority
    page.set_viewport_size({"width": 1280, "height": 1500})
    page.goto(f"{url}/studio/policy")
    page.wait_for_selector("#choices li")
    page.click("#start")
    page.locator("#result svg").wait_for()
    page.wait_for_timeout(500)
    page.locator("section:has(#what-if-title)").screenshot(path=IMAGES / "studio-what-if.png")


if __name__ == "__main__":
    main()
