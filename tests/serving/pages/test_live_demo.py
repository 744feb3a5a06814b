"""`topstory demo --live`: visitors come, and the policy learns what they like."""

from __future__ import annotations

import subprocess
import sys

import httpx
from playwright.sync_api import Browser

MAIN = "from topstory.cli import main; main()"
OPTIONS = ("demo", "--live", "--no-browser", "--port", "0", "--seconds", "300")
MOST_VISITS = 60_000  # some paths have not climbed after 6,000


# The lines of the chart: how many points each has, and whether it is dotted.
LINES = """() => Object.fromEntries([...document.querySelectorAll("#chart path.line")].map(
  (line) => [line.classList[1],
    [line.getAttribute("d").split("L").length, line.hasAttribute("stroke-dasharray")]]))"""

# Whether deployment's line ends clearly above the one at random: heights above the line of zero.
CLIMBED = """() => {
  const zero = Number(document.querySelector("#chart line.grid").getAttribute("y1"));
  const drawn = (kind) => document.querySelector(`#chart path.${kind}`).getAttribute("d");
  const height = (kind) => zero - Number(drawn(kind).split(" ").at(-1));
  return height("uniform") > 0 && height("deployment") > 1.1 * height("uniform");
}"""


def test_deployment_climbs_away_from_stories_at_random(browser: Browser) -> None:
    """By the true chances of what was shown, without the noise of clicks; and so it is drawn."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *OPTIONS], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        url, _, key = lines[2].split()[-1].partition("/demo#")
        auth = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=url, headers=auth, timeout=60) as http:
            assert "the studio" in http.get("/demo").text.lower()
            assert http.post("/demo/rate?rate=9999").status_code == 422
            assert http.post("/demo/rate?rate=800").json() == {"rate": 800}
            early = late = None
            while process.poll() is None:
                try:
                    state = http.get("/studio/data/now").json()
                except httpx.TransportError:  # its time is over
                    break
                for _, (visits, best, random, shown, chances) in state["simulation"]["series"]:
                    if visits > 300 and early is None:
                        early = (chances / shown) / (random / visits)
                    late = (chances / shown) / (random / visits)
                    assert best / visits > random / visits
                if late is not None and ((visits > 3000 and late > 1.15) or visits > MOST_VISITS):
                    break
        assert early is not None
        assert late is not None
        assert late > 1.15
        assert state["buckets"]["deployment"]["shows"] > 1000
        assert state["articles"] >= 18
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{url}/demo#{key}")
        page.frame_locator("#studio").locator("#chart path.truth").wait_for()
        lines = page.frames[-1].evaluate(LINES)
        assert {name for name, (_, dotted) in lines.items() if dotted} == {"truth", "ceiling"}
        assert set(lines) == {"truth", "ceiling", "deployment", "learning", "uniform"}
        assert all(points > 2 for points, _ in lines.values())
        # Clicks are noise: to be seen in them, the climb may take some more visits.
        page.frames[-1].wait_for_function(CLIMBED, timeout=60_000)
        page.close()
    finally:
        process.terminate()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()
