"""Table 1 in other formats, the paper's own numbers, and figures for paper."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from pathlib import Path

import plotly.graph_objects as go
import pytest
from tests.studies.small import small_study

from topstory.report import Cell, Number, Report, Row, Table1, published
from topstory.report.drawing import draw
from topstory.report.figures import Figure, Panel, figures
from topstory.report.html import page
from topstory.report.table1_formats import as_csv, as_latex, as_markdown
from topstory.studies import StudyWarning

CELL = Cell(
    size=0.3,
    parameters={"alpha": 0.4},
    repeats=3,
    deploy=Number(1.5, 1.4, 1.6),
    learn=Number(None),
    deploy_lift=Number(-0.012, -0.05, 0.02),
    learn_lift=Number(None),
    best_deploy=True,
    best_learn=False,
    paper_deploy=1.582,
    cost=34.25,
)
TABLE = Table1((0.3,), (Row("ucb", "ε-greedy & co", (CELL,)),), Number(1.6), 1.615)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    out = tmp_path_factory.mktemp("report") / "out"
    return small_study(out, policies=["egreedy", "ucb", "linucb-disjoint"]).report()


def test_markdown_has_the_papers_layout() -> None:
    lines = as_markdown(TABLE).splitlines()
    assert lines[0] == "| algorithm | 30 % deploy | learn |"
    assert lines[2] == "| ε-greedy & co | **1.500** (−1.2%) | – (–) |"


def test_latex_has_two_lines_for_each_algorithm() -> None:
    text = as_latex(TABLE)
    assert "\\multicolumn{2}{|c|}{size = 30\\%}" in text
    assert "$\\epsilon$-greedy & co & \\textbf{1.500} & – \\\\" in text
    assert " & $-$1.2\\% & – \\\\" in text


def test_csv_keeps_full_precision() -> None:
    (row,) = csv.DictReader(io.StringIO(as_csv(TABLE)))
    assert (row["deploy"], row["deploy_low"], row["deploy_lift"]) == ("1.5", "1.4", "-0.012")
    assert (row["learn"], row["alpha"], row["epsilon"]) == ("", "0.4", "")
    assert (row["paper_deploy"], row["cost"]) == ("1.582", "34.25")


def test_the_papers_lifts_are_those_of_its_ctrs() -> None:
    """To its own rounding, and where it rounds 0.1 % down to nothing."""
    for policy, lifts in published.LIFTS.items():
        for place, pair in enumerate(lifts):
            for bucket in (0, 1):
                ours = published.TABLE_1[policy][place][bucket]
                base = published.TABLE_1["egreedy"][place][bucket]
                assert pair[bucket] == pytest.approx(100 * (ours / base - 1), abs=0.16)


def test_every_plot_is_one_that_plotly_knows(report: Report) -> None:
    for figure in figures(report):
        for panel in figure.panels:
            text = str(panel.spec).replace("'ink'", "'#123456'")
            go.Figure(eval(text))  # raises for a property that there is not


def test_figures_on_paper_are_the_same_bytes_each_time(report: Report) -> None:
    for figure in figures(report):
        one, two = draw(figure), draw(figure)
        assert one == two
        assert ET.fromstring(one["svg"]).tag.endswith("svg")
        assert one["png"].startswith(b"\x89PNG")


def test_what_a_user_wrote_cannot_become_markup(report: Report) -> None:
    import msgspec

    evil = msgspec.structs.replace(
        report, title="<script>alert(1)</script>", summary=("</script><b>x",), command="<i>"
    )
    text = page(evil, figures(evil))
    assert "<script>alert(1)" not in text
    assert "</script><b>x" not in text
    clouds = tuple(
        msgspec.structs.replace(
            cloud,
            articles=tuple(
                msgspec.structs.replace(a, article="</script><img src=x>") for a in cloud.articles
            ),
        )
        for cloud in report.scatters
    )
    evil = msgspec.structs.replace(report, scatters=clouds)
    assert "</script><img" not in page(evil, figures(evil))


def test_on_paper_a_long_title_is_broken_before_it_runs_into_the_next() -> None:
    """A panel of two abreast is 3.6 inches wide: some 48 bold letters of 8 points."""
    title = "disjoint: ε-greedy (disjoint) +7.9%, linucb (disjoint) +31.3%"
    axes = {"xaxis": {"title": {"text": "x"}}, "yaxis": {"title": {"text": "y"}}}
    panel = Panel(title, {"data": [], "layout": axes})
    drawn = ET.fromstring(draw(Figure("figure3", "", "", (panel, panel)))["svg"])
    texts = ["".join(each.itertext()) for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert max(map(len, texts)) <= 48
    assert "linucb (disjoint) +31.3%" in texts


def test_a_study_without_a_click_still_has_a_report(tmp_path: Path) -> None:
    from dataclasses import replace

    from tests.studies.small import logs

    barren = {role: replace(log, payoff=log.payoff * 0) for role, log in logs().items()}
    with pytest.warns(StudyWarning, match="the tuning log has no clicks"):
        found = small_study(tmp_path / "out", policies=["ucb"], **barren)
    assert found.report().summary[0].startswith("Too few clicks")
    assert found.write().exists()
