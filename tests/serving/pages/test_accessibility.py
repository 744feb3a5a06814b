"""axe-core finds nothing serious on any page, in both themes."""

from __future__ import annotations

from importlib.resources import files

import pytest
from playwright.sync_api import Browser
from tests.serving.pages.browsing import Visit, visiting
from tests.serving.processes import Served

import topstory as ts

AXE = files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
SECTIONS = ("", "/articles", "/visitors", "/policy", "/health", "/decisions")


def serious(visit: Visit) -> list[str]:
    """What it found that is serious or worse, with the elements."""
    visit.page.evaluate(AXE)
    found = visit.page.evaluate("axe.run()")["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html']}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_serious_issue(browser: Browser, paged: Served, theme: str) -> None:
    with ts.Client(paged.url, paged.key, timeout=60) as client:
        for _ in range(5):
            client.decide([0.1, 0.6, 0.1, 0.1, 0.1, 1.0])
    # Its script comes from no file of ours, which the pages' own policy forbids.
    # Without motion: colours of what is still fading in are not the page's.
    wanted = {"color_scheme": theme, "reduced_motion": "reduce", "bypass_csp": True}
    with visiting(browser, paged, **wanted) as visit:
        page = visit.page
        page.goto("/studio")
        assert serious(visit) == []
        visit.sign_in(paged.key)
        for section in SECTIONS:
            page.goto(f"/studio{section}")
            page.wait_for_selector("#main:not([data-waiting])")
            assert serious(visit) == [], section
        page.goto("/studio/articles")
        page.wait_for_selector("#articles tbody tr")
        page.click("#add")
        assert serious(visit) == []
        page.goto("/?as=1")
        page.click("#why-open")
        page.wait_for_selector("#why .why")
        assert serious(visit) == []
