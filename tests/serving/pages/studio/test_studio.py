"""The studio in a real browser: keys and roles, live numbers, editing, and what it says if not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Response, Route
from tests.serving.pages.browsing import WIDTHS, overflow, shifted, visiting
from tests.serving.processes import Served, eventually

import topstory as ts

SECTIONS = ("", "/articles", "/visitors", "/policy", "/health", "/decisions")
# Of all buckets, in the table.
CLICKS = r"""[...document.querySelectorAll("#buckets tbody tr")]
  .reduce((sum, row) => sum + Number(row.cells[3].textContent.replace(/\D/g, "") || 0), 0)"""
MARK = {"X-Topstory-Studio": "1"}
BUSY = '{"error": {"reason": "unavailable", "message": "the learner is away"}}'


@contextmanager
def signed_in(service: Served, key: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=60) as client:
        answer = client.post("/studio/session", headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 200
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        yield client


def test_a_wrong_key_is_refused_in_words_and_a_right_one_opens_the_page_asked_for(
    browser: Browser, paged: Served
) -> None:
    with visiting(browser, paged) as visit:
        page = visit.page
        page.goto("/studio/health")
        page.fill("#key", "ts_wrong")
        page.click("button[type=submit]")
        page.wait_for_selector("#problem:has-text('does not know this key')")
        page.fill("#key", paged.reader)
        page.keyboard.press("Enter")
        page.wait_for_selector("[data-section=health] #tiles .card")
        page.click("text=Sign out")
        page.wait_for_selector("#sign-in")


def test_a_visitors_click_is_in_the_studio_within_two_seconds(
    browser: Browser, paged: Served
) -> None:
    with visiting(browser, paged) as editor, visiting(browser, paged) as visitor:
        page = editor.sign_in(paged.reader)
        page.wait_for_selector("#buckets tbody tr")
        before = page.evaluate(CLICKS)
        visitor.page.goto("/")
        visitor.page.click(".story.shown .open")
        visitor.page.wait_for_selector("#note:has-text('counted')")
        eventually(lambda: page.evaluate(CLICKS) == before + 1, seconds=2)
        assert shifted(page) < 0.1


def test_an_editor_adds_an_article_it_is_shown_to_somebody_and_retired(
    browser: Browser, paged: Served
) -> None:
    with visiting(browser, paged) as visit:
        page = visit.sign_in(paged.key, "/studio/articles")
        page.click("#add")
        page.click("#edit-save")
        page.wait_for_selector("#edit-problem:has-text('Give it an id')")
        page.fill("#f-id", "fresh <i>id</i>")
        page.fill("#f-title", "A <b>fresh</b> story")
        page.click("#edit-save")
        page.wait_for_selector("#articles .t:has-text('A <b>fresh</b> story')")
        with ts.Client(paged.url, paged.key, timeout=60) as client:
            user = [0.9, 0.025, 0.025, 0.025, 0.025, 1.0]
            shown = {client.decide(user).article for _ in range(300)}
            assert "fresh <i>id</i>" in shown
        page.fill("#search", "fresh")
        page.wait_for_selector("#count:has-text('1 of 21')")
        page.click("#articles button:has-text('Edit')")
        page.fill("#f-title", "An older story")
        page.click("#edit-save")
        page.fill("#search", "older")
        page.wait_for_selector("#articles .t:has-text('An older story')")
        page.click("#articles button:has-text('Retire')")
        page.click("#retire-yes")
        page.wait_for_selector("#none:has-text('No article matches')")


def test_a_table_of_10_000_articles_draws_one_page_at_a_time(
    browser: Browser, paged: Served
) -> None:
    """The service's own rows, as of a pool with 400 pages of them."""

    def crowded(route: Route) -> None:
        found = route.fetch().json()
        number = int(parse_qs(urlsplit(route.request.url).query)["page"][0])
        found |= {"all": 10_000, "total": 10_000, "pages": 400, "page": number}
        route.fulfill(json=found)

    with visiting(browser, paged) as visit:
        visit.page.route("**/studio/data/articles*", crowded)
        page = visit.sign_in(paged.key, "/studio/articles")
        page.wait_for_selector("#count:has-text('10,000 articles')")
        for number in (2, 3):
            page.click("#forth")
            page.wait_for_selector(f"#page:has-text('{number} / 400')")
            assert page.locator("#articles tbody tr").count() <= 25
        visit.page.unroute_all(behavior="wait")


def test_a_pin_holds_until_it_is_undone_and_says_what_it_costs(
    browser: Browser, paged: Served
) -> None:
    user = [0.9, 0.025, 0.025, 0.025, 0.025, 1.0]
    with (
        visiting(browser, paged) as visit,
        ts.Client(paged.url, paged.key, timeout=60) as client,
    ):
        for _ in range(20):
            client.decide(user)
        page = visit.sign_in(paged.key, "/studio/articles")
        page.wait_for_selector("#articles tbody tr")
        row = page.locator("#articles tbody tr").last
        article = row.locator(".item .i").inner_text()
        page.fill("#search", article)
        page.wait_for_selector("#count:has-text('1 of')")
        page.click("#articles button:has-text('Levers')")
        page.wait_for_selector("#levers-cost:has-text('in 1,000 visits')")
        page.check("#l-pin")
        page.click("#levers-save")
        page.wait_for_selector("#articles .tag.lever:has-text('pinned')")
        page.wait_for_selector("#articles .levers:has-text('in 1,000 visits')")
        page.goto("/studio/visitors")
        page.wait_for_selector("#answer .lead:has-text('An editor pinned it')")
        page.wait_for_selector("#answer .tag.lever:has-text('pinned')")
        page.goto("/studio/articles")
        page.fill("#search", article)
        page.wait_for_selector("#count:has-text('1 of')")
        held = [client.decide(user) for _ in range(100)]
        assert {each.article for each in held if each.bucket != "uniform"} == {article}
        (view,) = client.levers("front")
        assert (view.article, view.pinned) == (article, True)
        page.click("#articles button:has-text('Levers')")
        assert page.is_checked("#l-pin")
        page.click("#levers-undo")
        page.wait_for_selector("#articles .tag.lever", state="detached")
        assert client.levers("front") == []


def test_what_a_read_key_cannot_do_is_neither_shown_nor_possible(
    browser: Browser, paged: Served
) -> None:
    with visiting(browser, paged) as visit:
        page = visit.sign_in(paged.reader, "/studio/articles")
        page.wait_for_selector("#articles tbody tr")
        assert page.locator("#add, #edit, #levers, #retire, .row-actions").count() == 0
        page.goto("/studio/policy")
        page.wait_for_selector("#policy dd")
        assert page.locator("#try, #start, #revert, #result button").count() == 0
    with signed_in(paged, paged.reader) as client:
        path = "/v1/pools/front/articles/politics-1"
        assert client.delete(path, headers=MARK).status_code == 403
        assert client.put(path, headers=MARK, json={"title": "x"}).status_code == 403
        assert client.get(path, headers=MARK).status_code == 200


def test_a_cookie_alone_changes_nothing_and_a_forged_one_is_nobody(paged: Served) -> None:
    """A page of another site can send cookies, but not our header."""
    with signed_in(paged, paged.key) as client:
        path = "/v1/pools/front/articles/politics-1"
        assert client.delete(path).status_code == 401
        assert client.get(path).status_code == 401
        assert client.post("/v1/decide", headers=MARK, json={"user": [1] * 6}).status_code == 401
        token = client.cookies["topstory_studio"]
        client.cookies.clear()
        for wrong in (token[:-3] + "AAA", "x" * 75, "", "é"):
            headers = {b"Cookie": f"topstory_studio={wrong}".encode()}
            assert client.get("/studio/data/now", headers=headers).status_code == 401
            assert client.get("/studio", headers=headers).status_code == 401


def test_bad_questions_get_clear_answers(paged: Served) -> None:
    with signed_in(paged, paged.reader) as client:
        for path, status in (
            ("/studio/nothing", 404),
            ("/studio/data/articles?sort=x", 422),
            ("/studio/data/articles?page=x", 422),
            ("/studio/data/now?pool=x", 404),
            ("/studio/data/decision?id=", 422),
            (f"/studio/data/decision?id={'9' * 5000}", 422),
            ("/studio/data/decision?id=999999", 404),
            ("/studio/data/decision?id=k1.x", 403),
        ):
            assert client.get(path).status_code == status, path
        for body in ("", "{", '{"user": []}', '{"user": [1, 1]}', '{"user": {"a": 1}}'):
            asked = client.post("/studio/data/explain", headers=MARK, content=body)
            assert asked.status_code in (400, 422), body


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_section_fits_every_width_in_both_themes(
    browser: Browser, paged: Served, theme: str
) -> None:
    with visiting(browser, paged, color_scheme=theme, reduced_motion="reduce") as visit:
        page = visit.sign_in(paged.key)
        for section in SECTIONS:
            page.goto(f"/studio{section}")
            page.wait_for_selector("#link[data-state=good]")
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                assert overflow(page) <= 0, (section, width)


def test_a_decision_is_found_by_its_id_with_everything_that_was_known(
    browser: Browser, paged: Served
) -> None:
    with ts.Client(paged.url, paged.key, timeout=60) as client:
        made = client.decide([0.1, 0.6, 0.1, 0.1, 0.1, 1.0], visitor="v<u>1")
        client.feedback(made.decision, 1.0)
    with visiting(browser, paged) as visit:
        page = visit.sign_in(paged.reader, "/studio/decisions")
        page.fill("#id", made.decision)
        page.click("button:has-text('Look up')")
        page.wait_for_selector("#found .why")
        said = page.inner_text("#found")
        for known in ("a click", made.bucket, "Learned from", "all"):
            assert known in said
        page.fill("#id", "k1.not-one-of-ours")
        page.click("button:has-text('Look up')")
        page.wait_for_selector("#found .problem:has-text('did not sign')")


def test_a_dead_service_and_an_ended_session_are_said_and_the_first_goes_on_by_itself(
    browser: Browser, paged: Served
) -> None:
    with visiting(browser, paged) as visit:
        page = visit.sign_in(paged.reader, "/studio/health")
        visit.context.set_offline(True)
        page.wait_for_selector("#problems:has-text('does not answer')")
        visit.context.set_offline(False)
        page.wait_for_selector("#link[data-state=good]")
        page.wait_for_selector("#problems:not(:has(p))", state="attached")
        visit.context.clear_cookies()
        page.wait_for_selector("#problems:has-text('session has ended')")
        page.click("#problems a")
        page.wait_for_selector("#sign-in")
        visit.complaints.clear()  # Chromium's own, of requests that failed


def test_without_traffic_the_studio_says_what_will_be_here(browser: Browser, paged: Served) -> None:
    with visiting(browser, paged) as visit:
        page = visit.sign_in(paged.reader, "/studio?pool=quiet")
        page.wait_for_selector("#quiet:has-text('No visitor yet')")
        assert "POST /v1/decide" in page.inner_text("#quiet")
        assert page.inner_text("#lift-words") == "waiting for visitors"
        page.click("#quiet a")
        page.wait_for_selector("#recent:has-text('appears here when your site asks for it')")
        assert page.input_value("#pool") == "quiet"


def test_stale_numbers_are_called_so_until_the_service_is_back(
    browser: Browser, paged: Served
) -> None:
    """The stream falls silent; then nobody listens; then it is refused; then it goes on."""
    streams: list[Route] = []
    with visiting(browser, paged) as visit:
        visit.sign_in(paged.reader)
        page = visit.page
        page.clock.install()
        state = visit.context.request.get("/studio/data/now").text()
        page.route("**/studio/stream*", lambda route: streams.append(route))

        def asked() -> Route:
            eventually(lambda: page.evaluate("1") and streams)  # it hears of requests as it works
            return streams.pop()

        def answered(body: str) -> None:
            asked().fulfill(content_type="text/event-stream", body=f"retry: 1\n{body}\n\n")

        page.goto("/studio")
        answered(f"data: {state}")
        page.wait_for_selector("#link:has-text('live')")
        shown = page.inner_text("#buckets")
        assert page.locator("#problems p").count() == 0
        silent = asked()
        page.clock.fast_forward(6000)
        page.wait_for_selector("#problems:has-text('What you see is what it said last')")
        assert "no answer since" in page.inner_text("#link")
        assert page.inner_text("#buckets") == shown

        silent.abort("connectionrefused")
        page.route("**/studio/data/now*", lambda route: route.fulfill(status=503, body=BUSY))
        answered('event: refused\ndata: {"status": 503}')
        page.wait_for_selector("#problems:has-text('the learner is away')")
        page.unroute_all()
        page.clock.fast_forward(2000)
        page.wait_for_selector("#link:has-text('live')")
        assert page.locator("#problems p").count() == 0
        visit.complaints.clear()  # Chromium's own, of requests that failed


def test_visitors_are_explained_for_any_mix(browser: Browser, paged: Served) -> None:
    with visiting(browser, paged) as visit:
        page = visit.sign_in(paged.reader, "/studio/visitors")
        page.wait_for_selector("#segments .card")
        assert page.locator("#segments .card").count() == 5
        assert "follows sports" in page.inner_text("#segments").lower()
        page.click("#people button:has-text('Ben')")
        page.wait_for_selector("#answer .why")


def test_all_that_a_page_loads_is_below_600_kilobytes(browser: Browser, paged: Served) -> None:
    with visiting(browser, paged) as visit:
        answers: list[Response] = []
        visit.page.on("response", lambda answer: answers.append(answer))
        visit.page.goto("/", wait_until="networkidle")
        assert len(answers) > 8
        assert sum(len(answer.body()) for answer in answers) < 600_000
        visit.sign_in(paged.reader)
        page = visit.page
        answers.clear()
        page.goto("/studio")
        page.wait_for_selector("#buckets tbody tr")
        loaded = [each for each in answers if "/studio/stream" not in each.url]
        assert sum(len(answer.body()) for answer in loaded) < 600_000
