"""A report's files: `report.html`, `table1.*`, and `figures/`."""

from __future__ import annotations

from pathlib import Path

from topstory.files import replaced_file
from topstory.report.drawing import FORMATS, drawings
from topstory.report.figures import figures
from topstory.report.html import SCRIPT, figure_page, page, plotly_script
from topstory.report.records import Report
from topstory.report.tables import as_csv, as_latex, as_markdown


def write(report: Report, folder: Path) -> Path:
    """Write all of them, each whole or not at all; where the report is."""
    drawn = folder / "figures"
    drawn.mkdir(parents=True, exist_ok=True)
    _put(folder / "table1.csv", as_csv(report.table))
    _put(folder / "table1.md", as_markdown(report.table))
    _put(folder / "table1.tex", as_latex(report.table))
    _put(drawn / SCRIPT, plotly_script())
    for figure in figures(report):
        _put(drawn / f"{figure.key}.html", figure_page(figure))
    for key, made in drawings(report).items():
        for kind in FORMATS:
            _put(drawn / f"{key}.{kind}", made[kind])
    target = folder / "report.html"
    _put(target, page(report))
    return target


def _put(path: Path, content: str | bytes) -> None:
    with replaced_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
