"""Table 1 as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io

from topstory.policies.registry import TUNED
from topstory.report.records import Cell, Table1
from topstory.report.wording import ctr, percent, share

NUMBERS = ("deploy", "learn", "deploy_lift", "learn_lift")
ADDED = ("total", "true_deploy", "true_learn", "day_sd", "cost")


def as_csv(table: Table1) -> str:
    """One line for each policy and size, in full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [f"{name}{end}" for name in NUMBERS for end in ("", "_low", "_high")]
    published = [f"paper_{name}" for name in NUMBERS]
    names = ["policy", "algorithm", "size", *TUNED, "ridge", "repeats", *columns, *published]
    writer.writerow([*names, *ADDED])
    for row in table.rows:
        for cell in row.cells:
            numbers = [getattr(cell, name) for name in NUMBERS]
            writer.writerow(
                [
                    *(row.policy, row.name, cell.size),
                    *(cell.parameters.get(name) for name in (*TUNED, "ridge")),
                    cell.repeats,
                    *(end for number in numbers for end in (number.value, number.low, number.high)),
                    *(getattr(cell, name) for name in (*published, *ADDED)),
                ]
            )
    return out.getvalue()


def as_markdown(table: Table1) -> str:
    """The paper's layout: two columns for each size, the highest number of each in bold."""
    pairs = [(f"{share(size)} deploy", "learn") for size in table.sizes]
    lines = [
        "| algorithm | " + " | ".join(name for pair in pairs for name in pair) + " |",
        "|---|" + "---:|" * (2 * len(pairs)),
    ]
    for row in table.rows:
        cells = [text for cell in row.cells for text in _marked(cell, "**{}**")]
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    omniscient = ctr(table.omniscient.value)
    lines += ["", f"Relative CTRs, and lifts over ε-greedy; omniscient: {omniscient}.", ""]
    return "\n".join(lines)


def as_latex(table: Table1) -> str:
    """A tabular in the paper's layout, with two lines for each algorithm."""
    sizes = " & ".join(
        f"\\multicolumn{{2}}{{|c|}}{{size = {100 * size:g}\\%}}" for size in table.sizes
    )
    lines = [
        "\\begin{tabular}{|c|" + "c|c|" * len(table.sizes) + "}",
        "\\hline",
        f" & {sizes} \\\\",
        "algorithm & " + " & ".join(["deploy & learn"] * len(table.sizes)) + " \\\\",
        "\\hline\\hline",
    ]
    for row in table.rows:
        name = row.name.replace("ε", "$\\epsilon$")
        ctrs = [text for cell in row.cells for text in _ctrs(cell, "\\textbf{{{}}}")]
        lifts = [text for cell in row.cells for text in _lifts(cell)]
        lines += [
            f"{name} & {' & '.join(ctrs)} \\\\",
            f" & {' & '.join(lifts).replace('%', chr(92) + '%').replace('−', '$-$')} \\\\",
            "\\hline",
        ]
    return "\n".join([*lines, "\\end{tabular}", ""])


def _marked(cell: Cell, bold: str) -> list[str]:
    return [f"{a} ({b})" for a, b in zip(_ctrs(cell, bold), _lifts(cell), strict=True)]


def _ctrs(cell: Cell, bold: str) -> list[str]:
    return [
        bold.format(ctr(number.value)) if best else ctr(number.value)
        for number, best in ((cell.deploy, cell.best_deploy), (cell.learn, cell.best_learn))
    ]


def _lifts(cell: Cell) -> list[str]:
    return [percent(cell.deploy_lift.value), percent(cell.learn_lift.value)]
