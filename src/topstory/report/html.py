"""The report as one self-contained HTML page, and each figure as a page of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

from topstory.report.answer_chart import DRAWN, PHONE, answer_chart
from topstory.report.figures import Figure
from topstory.report.records import AnswerPage, Report
from topstory.report.style import style_of
from topstory.report.wording import (
    amount,
    between,
    cost,
    ctr,
    percent,
    share,
    tip,
    unbroken,
    worded,
)

SCRIPT = "plotly-basic.min.js"  # 1.2 MB; the whole plotly.js has 4.5
PLACE = "/* plotly */"  # where it goes when all other words are in place


def page(report: Report, figures: Sequence[Figure]) -> str:
    """The report. It contains everything it needs, and makes no requests."""
    made = _template("report.html.j2").render(
        report=report,
        figures=figures,
        specs=_specs(figures),
        css=_css(),
        js=_text("report.js"),
        plotly=PLACE,
    )
    return worded(made, report.binary).replace(PLACE, plotly_script())


def answer_page(found: AnswerPage) -> str:
    """An answer with the numbers behind it. It needs no script, and makes no requests."""
    return _template("answer_page.html.j2").render(page=found, css=_css())


def figure_page(figure: Figure) -> str:
    """One figure; it loads plotly's script from the same folder."""
    return _template("figure.html.j2").render(
        figure=figure, specs=_specs([figure]), css=_css(), js=_text("report.js"), script=SCRIPT
    )


@cache
def plotly_script() -> str:
    """The part of plotly.js that draws lines, points and bars.

    `npm pack plotly.js-basic-dist-min` has it, with its licence, which stands beside it.
    """
    return _text(SCRIPT)


def _specs(figures: Sequence[Figure]) -> str:
    specs = {figure.key: [panel.spec for panel in figure.panels] for figure in figures}
    # "</" could end the script element that holds this; JSON allows the slash to be escaped.
    return msgspec.json.encode(specs).decode().replace("</", "<\\/")


def _css() -> str:
    return _text("report.css") + DRAWN


def _text(name: str) -> str:
    return (files("topstory.report") / "page" / name).read_text("utf-8")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        amount=amount,
        answer_chart=answer_chart,
        between=between,
        cost=cost,
        ctr=ctr,
        percent=percent,
        phone=PHONE,
        share=share,
        style_of=style_of,
        tip=tip,
    )
    made.filters["unbroken"] = unbroken
    return made


def _template(name: str) -> Template:
    return _environment().get_template(name)
