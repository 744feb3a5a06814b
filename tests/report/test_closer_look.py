"""The report of `evaluate` and `choose` in a real browser: its sections, small, and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.evaluation.off_policy.test_examination import recorded
from tests.evaluation.off_policy.test_propensities import Uniform
from tests.report.browser import chromium

import topstory as ts
from topstory.report.folder import write_answer
from topstory.studies.report.judged import evaluation_page, selection_page

QUESTIONS = (
    "What would change the conclusion?",
    "Do the estimators agree?",
    "Do a few events decide?",
    "Does the log show what the policy would?",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("closer") / "report.html"
    found = ts.evaluate({"uniform": Uniform()}, recorded(), examine=True)
    write_answer(evaluation_page(found, "logs"), path)
    return path


def opened(browser: Browser, path: Path, width: int) -> Page:
    page = browser.new_context(viewport={"width": width, "height": 844}).new_page()
    page.goto(path.as_uri())
    return page


def test_every_question_has_its_section(browser: Browser, report: Path) -> None:
    page = opened(browser, report, 1280)
    titles = page.locator("h2").all_inner_texts()
    assert [title for title in titles if title in QUESTIONS] == list(QUESTIONS)
    assert page.locator("#weights tbody tr").count() > 2
    assert page.locator("#estimators tbody tr").count() == 6
    assert page.locator("#articles tbody tr").count() == 6
    bars = page.evaluate(
        "[...document.querySelectorAll('#weights .bar i')].map(bar => bar.offsetWidth)"
    )
    assert max(bars) > 20
    assert report.stat().st_size < 2_000_000


def test_it_is_readable_on_a_phone(browser: Browser, report: Path) -> None:
    page = opened(browser, report, 390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#turns li").first.is_visible()


def test_nothing_is_requested_and_markup_in_names_is_text(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    found = ts.evaluate({"<b>x</b>": Uniform(), "random": "random"}, recorded(), examine=True)
    write_answer(evaluation_page(found, "logs"), path)
    requests: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    assert len(requests) == 1
    assert page.locator("main b").count() == 0


def test_the_report_of_choose_looks_closer_at_the_winner(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    found = ts.choose(recorded(), policies=["egreedy", "random"], examine=True)
    write_answer(selection_page(found, "logs", "out"), path)
    titles = opened(browser, path, 390).locator("h2").all_inner_texts()
    assert set(QUESTIONS) <= set(titles)
