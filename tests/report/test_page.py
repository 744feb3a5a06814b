"""The report in a real browser: its figures draw, its controls work, and it makes no requests."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page
from tests.report.browser import chromium
from tests.studies.report.test_summary import tastes
from tests.studies.small import logs, small_study

from topstory.report import Report
from topstory.report.folder import write_report

PLOTS = 4 + 4 + 2 + 1 + 1  # panels of figures 2, 3, 4 and 5, and over time


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    policies = ["egreedy", "ucb", "egreedy-seg", "ucb-seg", "egreedy-disjoint", "linucb-disjoint"]
    policies += ["egreedy-hybrid", "linucb-hybrid", "ucb-warm"]
    folder = tmp_path_factory.mktemp("report") / "out"
    given = {role: tastes(log) for role, log in logs().items()}
    study = small_study(folder, policies=policies, alphas=[0.3, 0.1], **given)
    study.write()
    # The same with a truth, as if a simulator had made the logs.
    write_report(simulated(study.report()), folder / "simulated")
    return folder


def simulated(report: Report) -> Report:
    rows = tuple(
        replace(
            row,
            cells=tuple(
                replace(cell, true_deploy=1.5, true_learn=1.4, paper_deploy=1.596)
                for cell in row.cells
            ),
        )
        for row in report.table.rows
    )
    return replace(report, table=replace(report.table, rows=rows))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


class Opened:
    """A page, with its console messages and its requests."""

    def __init__(self, browser: Browser, path: Path, **context: Any) -> None:
        self.page: Page = browser.new_context(**context).new_page()
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-drawn]")


@pytest.fixture(scope="module")
def opened(browser: Browser, out: Path) -> Opened:
    return Opened(browser, out / "report.html", viewport={"width": 1280, "height": 900})


def test_every_figure_draws(opened: Opened) -> None:
    drawn = opened.page.evaluate(
        "[...document.querySelectorAll('.plot')].map(p => p.querySelectorAll('.trace').length)"
    )
    assert len(drawn) == PLOTS
    assert all(traces > 0 for traces in drawn), drawn
    assert opened.messages == []


def test_no_request_leaves_the_page(opened: Opened) -> None:
    assert [url for url in opened.requests if not url.startswith("file:")] == []
    assert len(opened.requests) == 1  # the page itself
    policy = opened.page.get_attribute("meta[http-equiv]", "content")
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_above_the_fold_stand_the_picture_and_three_sentences(browser: Browser, out: Path) -> None:
    for width, height in ((390, 844), (820, 1180), (1280, 800)):
        page = Opened(
            browser, out / "report.html", viewport={"width": width, "height": height}
        ).page
        sentences = page.locator(".answer p").all_inner_texts()
        assert len(sentences) == 3
        assert sentences[0].startswith("Deploy ")
        assert "clicks in 100,000 visits" in sentences[1]
        drawn = page.locator(".answer-chart:visible")
        assert drawn.count() == 1
        box = drawn.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= height, width
        assert drawn.locator("circle").count() == 9
        assert drawn.locator(".reach").count() == 9  # every interval is drawn
        assert drawn.locator(".chosen").count() == 1
        name = drawn.locator(".chosen text").first.text_content() or ""
        name = name.removesuffix("recommended")
        assert sentences[0].replace("\u2011", "-").startswith(f"Deploy {name.strip()} with")
        page.context.close()


def test_the_recommended_policy_is_marked_in_the_table_and_shown_over_time(opened: Opened) -> None:
    row = opened.page.locator(".table1 tr.recommended")
    assert row.count() == 1
    name = row.locator("th").inner_text().split("\n")[0].strip()
    shown = opened.page.locator("#over_time .plot").evaluate(
        "p => p.data.filter(t => t.visible && t.line.width > 3).map(t => t.name)"
    )
    assert shown == [name]


def test_intervals_are_seen_without_pointing(opened: Opened) -> None:
    cells = opened.page.locator(".table1 td")
    assert opened.page.locator(".table1 td .ends").count() == cells.count()
    assert opened.page.locator("#figure2 .plot").first.locator(".errorbar").count() > 0
    assert opened.page.locator("#figure4 .plot").first.locator(".errorbar").count() > 0


def test_what_exploring_costs_stands_beside_every_deployment_ctr(opened: Opened) -> None:
    cells = opened.page.locator(".table1 td.deploy")
    costs = opened.page.locator(".table1 td.deploy .cost").all_inner_texts()
    assert len(costs) == cells.count()
    assert all(each.startswith("costs ") for each in costs)
    assert "exploring costs" in (cells.first.get_attribute("data-tip") or "")


def test_sections_are_named_by_what_they_answer(opened: Opened) -> None:
    names = [each.split("?")[0] for each in opened.page.locator("main h2").all_inner_texts()]
    for name in ("How much exploration", "Which articles gain", "With less data"):
        assert name in names
    assert "Figure 4" in opened.page.locator("#figure4 h2 small").inner_text()


def test_it_is_smaller_than_two_megabytes(out: Path) -> None:
    assert (out / "report.html").stat().st_size < 2_000_000


def test_a_phone_sees_few_points_at_a_time(browser: Browser, out: Path) -> None:
    page = Opened(browser, out / "report.html", viewport={"width": 390, "height": 844}).page
    drawn = page.locator("#figure4 .plot").first.locator(".point").count()
    assert 0 < drawn <= 5 * 6  # five policies, at most six sizes


def test_the_papers_numbers_are_only_in_simulated_studies(browser: Browser, out: Path) -> None:
    assert "the paper:" not in (out / "report.html").read_text("utf-8")
    opened = Opened(browser, out / "simulated" / "report.html")
    theirs = opened.page.locator(".table1 .paper").first
    assert not theirs.is_visible()
    opened.page.locator(".switch").click()
    assert theirs.is_visible()
    assert theirs.inner_text().split()[0] == "1.596"
    opened.page.locator(".switch").click()
    assert not theirs.is_visible()
    assert opened.messages == []


def test_a_cell_shows_its_interval_on_hover(opened: Opened) -> None:
    cell = opened.page.locator(".table1 td").nth(4)
    cell.hover()  # scrolls, which hides what is shown
    opened.page.mouse.move(0, 0)
    cell.hover()
    tip = opened.page.locator("#tip")
    tip.wait_for(state="visible")
    assert "95 % interval" in tip.inner_text()


def test_the_best_of_each_column_is_bold(opened: Opened) -> None:
    columns: dict[int, list[tuple[float, bool]]] = {}
    for row in opened.page.locator(".table1 tbody tr").all():
        for place, cell in enumerate(row.locator("td").all()):
            value = float(cell.locator("b").first.inner_text())
            best = "best" in (cell.get_attribute("class") or "")
            columns.setdefault(place, []).append((value, best))
    for cells in columns.values():
        assert sum(best for _, best in cells) == 1
        assert max(cells)[0] == next(value for value, best in cells if best)


def test_another_data_size_redraws_the_tuning_curves(opened: Opened) -> None:
    place = opened.page.locator("#figure2 .plot").first
    read = "p => p.data.filter(t => t.visible && t.meta).map(t => t.meta.size)"
    assert set(place.evaluate(read)) == {1}
    opened.page.locator("#figure2 .sizes label").nth(1).click()
    assert set(place.evaluate(read)) == {0.05}


def test_a_click_on_a_name_hides_the_policy(opened: Opened) -> None:
    place = opened.page.locator("#figure4 .plot").first
    read = "p => p.data.filter(t => t.visible).map(t => t.meta.policy)"
    assert "egreedy" in place.evaluate(read)
    opened.page.locator("#figure4 button[data-policy=egreedy]").click()
    assert "egreedy" not in place.evaluate(read)


@pytest.mark.parametrize("width", [390, 820, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_any_screen_in_light_and_dark_mode(
    browser: Browser, out: Path, scheme: Any, width: int
) -> None:
    phone = Opened(
        browser,
        out / "report.html",
        viewport={"width": width, "height": 844},
        color_scheme=scheme,
        is_mobile=width < 800,
        has_touch=width < 800,
    )
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= width
    paper, ink = phone.page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    brightness = [sum(map(int, c[4:-1].split(","))) for c in (paper, ink)]
    assert (brightness[0] < brightness[1]) == (scheme == "dark")
    assert phone.messages == []


def test_it_prints_without_controls(browser: Browser, out: Path) -> None:
    paper = Opened(browser, out / "report.html")
    paper.page.emulate_media(media="print")
    assert not paper.page.locator("nav").is_visible()
    assert not paper.page.locator(".sizes").is_visible()
    assert paper.page.locator(".table1").is_visible()


def test_on_paper_every_plot_fits_its_frame_and_comes_back_on_screen(
    browser: Browser, out: Path
) -> None:
    """The sheet is A4's 210 mm less margins of 12: 703 pixels. Drawn for a wider screen before."""
    screen: Any = {"width": 1280, "height": 900}
    # Playwright waits by evaluating strings, which the page itself forbids.
    paper = Opened(browser, out / "report.html", viewport=screen, bypass_csp=True)
    width = "document.querySelector('.plot .main-svg').getBoundingClientRect().width"
    on_screen = paper.page.evaluate(width)
    paper.page.emulate_media(media="print")
    paper.page.set_viewport_size({"width": 703, "height": 994})
    paper.page.wait_for_function(f"{width} < 400")
    over = paper.page.evaluate(
        """[...document.querySelectorAll('figure')].map(frame => {
            const drawn = frame.querySelector('.main-svg').getBoundingClientRect();
            const box = frame.getBoundingClientRect();
            return Math.max(drawn.right - box.right, box.right - innerWidth);
        })"""
    )
    assert len(over) == PLOTS
    assert max(over) <= 0, over
    paper.page.set_viewport_size(screen)
    paper.page.emulate_media(media="screen")
    paper.page.wait_for_function(f"Math.abs({width} - {on_screen}) < 1")
    assert paper.messages == []


@pytest.mark.parametrize("key", ["figure2", "figure3", "figure4", "figure5", "over_time"])
def test_each_figure_stands_on_its_own(browser: Browser, out: Path, key: str) -> None:
    alone = Opened(browser, out / "figures" / f"{key}.html")
    assert alone.page.locator(".plot .main-svg").count() > 0
    assert alone.messages == []
    assert all(url.startswith("file:") for url in alone.requests)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, out: Path, scheme: Any) -> None:
    wide: Any = {"width": 1280, "height": 900}
    page = Opened(
        browser, out / "report.html", viewport=wide, color_scheme=scheme, bypass_csp=True
    ).page
    page.evaluate(files("axe_core_python").joinpath("axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    assert [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ] == []
