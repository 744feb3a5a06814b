"""The files of a report: `report.html`, `table1.*` and `figures/`."""

from __future__ import annotations

from pathlib import Path

from topstory.files import replaced_file
from topstory.report.drawing import draw
from topstory.report.figures import figures
from topstory.report.html import SCRIPT, answer_page, figure_page, page, plotly_script
from topstory.report.records import AnswerPage, Report
from topstory.report.table1_formats import as_csv, as_latex, as_markdown
from topstory.report.wording import worded


def write_answer(page: AnswerPage, path: Path) -> None:
    """Write the page of an answer; its folder is made. The file is never left half written."""
    with replaced_file(path) as file:
        file.write(answer_page(page).encode())


def write_report(report: Report, folder: Path) -> Path:
    """Write all of them; returns the path of `report.html`. A file is never left half written."""
    made, target = figures(report), folder / "report.html"
    contents: dict[Path, str | bytes] = {
        folder / "table1.csv": as_csv(report.table),
        folder / "table1.md": worded(as_markdown(report.table), report.binary),
        folder / "table1.tex": as_latex(report.table),
        folder / "figures" / SCRIPT: plotly_script(),
    }
    for figure in made:
        contents[folder / "figures" / f"{figure.key}.html"] = figure_page(figure)
        for format, picture in draw(figure).items():
            contents[folder / "figures" / f"{figure.key}.{format}"] = picture
    contents[target] = page(report, made)
    for path, content in contents.items():
        with replaced_file(path) as file:
            file.write(content.encode() if isinstance(content, str) else content)
    return target
