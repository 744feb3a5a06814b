"""The front page in a real browser: it shows what was decided, and a click is a payoff."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
import pytest
from playwright.sync_api import Browser
from tests.serving.pages.browsing import WIDTHS, overflow, shifted, visiting
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.messages import ArticleRequest, ArticleView

# Whatever is animated, or would be if it changed.
MOVING = """() => [...document.querySelectorAll("*")].filter((each) => {
  const style = getComputedStyle(each);
  return style.animationName !== "none" || parseFloat(style.transitionDuration) > 0;
}).map((each) => each.id)"""


def payoff(service: Served) -> float:
    with ts.Client(service.url, service.key, timeout=60) as client:
        return client.stats().pools["front"].payoff


def test_a_click_on_the_story_is_one_payoff_however_often_one_clicks(
    browser: Browser, paged: Served
) -> None:
    before = payoff(paged)
    with visiting(browser, paged) as visit:
        page = visit.page
        page.goto("/?as=2")
        assert page.locator(".strip button").count() == 4
        assert page.locator("nav.people a").count() == 6
        page.click(".story.shown .open")
        page.wait_for_selector("#note:has-text('counted')")
        page.click(".story.shown .open")
        page.wait_for_selector("#note:has-text('before')")
    assert payoff(paged) == before + 1


def test_hovering_and_choosing_by_key_features_a_story_but_pays_nothing(
    browser: Browser, paged: Served
) -> None:
    before = payoff(paged)
    with visiting(browser, paged) as visit:
        page = visit.page
        page.goto("/")
        page.hover("[data-feature='3']")
        page.wait_for_selector("#story-3.shown")
        page.focus("[data-feature='2']")
        page.keyboard.press("Enter")
        page.wait_for_selector("#story-2.shown")
        assert page.locator(".story.shown").count() == 1
        page.click("#story-2 .open")
        page.wait_for_selector("#note:has-text('F1')")
    assert payoff(paged) == before


def test_the_drawer_says_why_and_reasons_add_up(browser: Browser, paged: Served) -> None:
    with visiting(browser, paged) as visit:
        page = visit.page
        page.goto("/?as=3")
        with page.expect_response("**/today/why*") as answered:
            page.click("#why-open")
        why = answered.value.json()
        page.wait_for_selector("#why .why")
        assert why["bucket"] in page.inner_text("#why")
        assert why["article"]["title"] in page.inner_text("#why")
        total = why["rest"] + sum(reason["adds"] for reason in why["reasons"])
        assert total == pytest.approx(why["lead"], abs=1e-9)
        page.keyboard.press("Escape")
        assert not page.locator("#why").is_visible()


def test_markup_in_titles_is_shown_as_text(browser: Browser, paged: Served) -> None:
    title = '<img src=x onerror="document.title=1">&amp;"</script>'
    request = ArticleRequest(
        features=(0.0, 0.0, 0.0, 0.0, 1.0, 1.0),
        title=title,
        summary=title,
        link="javascript:alert(1)",
        picture="javascript:alert(1)",
    )
    with (
        ts.Client(paged.url, paged.key, timeout=60) as client,
        visiting(browser, paged) as visit,
    ):
        before = [each.id for each in client.articles("front")]
        client.put_article("front", "<b>x</b>", request)
        page = visit.page
        try:
            for _ in range(200):  # somebody is shown it: it is new, so learning tries it
                page.goto("/?as=5&new")
                if title in page.inner_text(".strip"):
                    break
            assert title in page.inner_text(".strip")
            assert page.title() == "Today"
            assert page.locator("[href^=javascript], [src^=javascript]").count() == 0
            page.click("#why-open")
            page.wait_for_selector("#why .why")
            assert page.locator("#why img").count() == 0
        finally:
            client.remove_article("front", "<b>x</b>")
        assert [each.id for each in client.articles("front")] == before


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_every_width_in_both_themes_and_does_not_move(
    browser: Browser, paged: Served, theme: str
) -> None:
    with visiting(browser, paged, color_scheme=theme, reduced_motion="reduce") as visit:
        page = visit.page
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.goto("/?as=1")
            assert overflow(page) <= 0, width
            top = page.evaluate("document.querySelector('.strip').offsetTop")
            page.click("[data-feature='4']")
            assert page.evaluate("document.querySelector('.strip').offsetTop") == top
            assert shifted(page) < 0.01


def test_nothing_moves_for_those_who_asked_for_less_motion(browser: Browser, paged: Served) -> None:
    with visiting(browser, paged, reduced_motion="no-preference") as visit:
        page = visit.page
        page.goto("/?as=1")
        page.click("#why-open")
        page.wait_for_selector("#why .why")
        moving = page.evaluate(MOVING)
        assert "why" in moving
        assert "story-1" in moving
        page.emulate_media(reduced_motion="reduce")
        assert page.evaluate(MOVING) == []


def test_a_stranger_cannot_pay_for_what_was_not_decided_here(paged: Served) -> None:
    with httpx.Client(base_url=paged.url, timeout=60) as stranger:
        assert stranger.post("/today/click?decision=k1.forged").status_code == 403
        assert stranger.post("/today/click").status_code == 422
        crossed = {"sec-fetch-site": "cross-site"}
        assert stranger.post("/today/click?decision=x", headers=crossed).status_code == 403
        assert stranger.get("/pictures/politics-1.svg").headers["content-type"] == "image/svg+xml"
        assert stranger.get("/pictures/..%2f..%2fkeys.svg").status_code == 404
        assert stranger.get("/pages/x/../../keys.toml").status_code == 404
        for persona in ("999999999999", "0000009", "0" * 5000):
            page = stranger.get(f"/?as={persona}")
            assert page.status_code == 200
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert "unsafe" not in page.headers["content-security-policy"]


def test_without_an_article_the_page_says_what_to_do(browser: Browser, paged: Served) -> None:
    with ts.Client(paged.url, paged.key, timeout=60) as client:
        kept = client.articles("front")
        for each in kept:
            client.put_article("front", each.id, _request(each, ends=datetime.now(UTC)))
        try:
            with visiting(browser, paged) as visit:
                visit.page.goto("/")
                assert "No story yet" in visit.page.inner_text("main")
        finally:
            for each in kept:
                client.put_article("front", each.id, _request(each, ends=None))


def _request(article: ArticleView, ends: datetime | None) -> ArticleRequest:
    return ArticleRequest(
        features=article.features,
        title=article.title,
        summary=article.summary,
        picture=article.picture,
        ends=ends,
    )


def test_every_visit_is_in_the_journal_under_the_name_of_the_page(paged: Served) -> None:
    with httpx.Client(base_url=paged.url, timeout=60) as visitor:
        before = _shows(paged)
        assert visitor.get("/").status_code == 200
        assert visitor.get("/").status_code == 200
        eventually(lambda: _shows(paged) == before + 2)


def _shows(service: Served) -> int:
    with ts.Client(service.url, service.key, timeout=60) as client:
        return client.stats().pools["front"].shows
