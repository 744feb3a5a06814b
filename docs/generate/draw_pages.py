"""Take the pictures of the pages, from the live demo itself: `make pictures`.

It runs `topstory demo --live` for some minutes, and needs Chromium.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.report.browser import chromium

IMAGES = Path(__file__).parents[1] / "images"
SECONDS = 150.0  # of visitors before the pictures
COMMAND = (sys.executable, "-m", "topstory.cli", "demo", "--live", "--no-browser", "--port", "0")


def main() -> None:
    """Write docs/images/live.png and studio-articles.png."""
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
            page.set_viewport_size({"width": 1280, "height": 1000})
            page.goto(f"{url}/studio/articles")
            page.wait_for_selector("#articles tbody tr")
            page.screenshot(path=IMAGES / "studio-articles.png")
    finally:
        process.terminate()
        process.wait(30)


if __name__ == "__main__":
    main()
