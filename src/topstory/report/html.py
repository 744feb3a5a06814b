"""The report as one self-contained HTML page, and each figure as a page of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

from topstory.report.figures import Figure
from topstory.report.records import Report
from topstory.report.style import style_of
from topstory.report.wording import between, ctr, percent, share, tip, unbroken

SCRIPT = "plotly.min.js"


def page(report: Report, figures: Sequence[Figure]) -> str:
    """The report. It contains everything it needs, and makes no requests."""
    return _template("report.html.j2").render(
        report=report,
        figures=figures,
        specs=_specs(figures),
        css=_text("report.css"),
        js=_text("report.js"),
        plotly=plotly_script(),
    )


def figure_page(figure: Figure) -> str:
    """One figure; it loads plotly's script from the same folder."""
    return _template("figure.html.j2").render(
        figure=figure, specs=_specs([figure]), css=_text("report.css"), js=_text("report.js")
    )


@cache
def plotly_script() -> str:
    """The plotly.js that comes with the package plotly."""
    return (files("plotly") / "package_data" / SCRIPT).read_text("utf-8")


def _specs(figures: Sequence[Figure]) -> str:
    specs = {figure.key: [panel.spec for panel in figure.panels] for figure in figures}
    # "</" could end the script element that holds this; JSON allows the slash to be escaped.
    return msgspec.json.encode(specs).decode().replace("</", "<\\/")


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
        between=between, ctr=ctr, percent=percent, share=share, style_of=style_of, tip=tip
    )
    made.filters["unbroken"] = unbroken
    return made


def _template(name: str) -> Template:
    return _environment().get_template(name)
