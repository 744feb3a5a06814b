"""One self-contained page, and each figure as a page of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

from topstory.report.figures import Figure, figures
from topstory.report.records import Report
from topstory.report.style import style
from topstory.report.wording import between, ctr, percent, share, tip, unbroken

SCRIPT = "plotly.min.js"


def page(report: Report) -> str:
    """The report: nothing that it needs is elsewhere, and it asks nothing of the network."""
    drawn = figures(report)
    return _template("report.html.j2").render(
        report=report,
        figures=drawn,
        specs=_specs(drawn),
        css=_text("report.css"),
        js=_text("report.js"),
        plotly=plotly_script(),
    )


def figure_page(figure: Figure) -> str:
    """One figure; it looks for plotly's script beside it."""
    return _template("figure.html.j2").render(
        figure=figure, specs=_specs([figure]), css=_text("report.css"), js=_text("report.js")
    )


@cache
def plotly_script() -> str:
    """The plotly.js that the package plotly ships."""
    return (files("plotly") / "package_data" / SCRIPT).read_text("utf-8")


def _specs(drawn: Sequence[Figure]) -> str:
    told = {figure.key: [panel.spec for panel in figure.panels] for figure in drawn}
    # Inside a script, "</" could end it: JSON may spell the slash with a backslash.
    return msgspec.json.encode(told).decode().replace("</", "<\\/")


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
        between=between, ctr=ctr, percent=percent, share=share, style=style, tip=tip
    )
    made.filters["unbroken"] = unbroken
    return made


def _template(name: str) -> Template:
    return _environment().get_template(name)
