"""Figure 4: relative CTR by the share of the data that was learned from."""

from __future__ import annotations

from collections.abc import Sequence

from topstory.report.figures.figure import BUCKETS, INK, Figure, Panel, Spec, legend
from topstory.report.records import Number, Report
from topstory.report.style import explorers, style_of
from topstory.report.wording import between, share

UNSURE = "#d3d7de"  # a bar whose lift is not significant


def by_size(report: Report) -> Figure:
    """Figure 4."""
    table = report.table
    sizes = list(reversed(table.sizes))
    panels = []
    for bucket, named in BUCKETS.items():
        data = []
        for row in table.rows:
            style = style_of(row.policy)
            cells = {cell.size: cell for cell in row.cells}
            numbers: list[Number] = [getattr(cells[size], bucket) for size in sizes]
            lifts: list[Number] = [getattr(cells[size], f"{bucket}_lift") for size in sizes]
            grey = [lift.low is not None and not lift.sure for lift in lifts]
            data.append(
                {
                    "type": "bar",
                    "name": row.name,
                    "meta": {"policy": row.policy},
                    "x": [share(size) for size in sizes],
                    "y": [number.value for number in numbers],
                    "marker": {
                        "color": [UNSURE if each else style.colour for each in grey],
                        "opacity": style.opacity,
                        "line": {
                            "width": [1.5 if each else 0 for each in grey],
                            "color": style.colour,
                        },
                    },
                    "error_y": _whiskers(numbers),
                    "customdata": [between(number) for number in numbers],
                    "hovertemplate": f"{row.name}, %{{x}}<br>CTR %{{y:.3f}}<br>%{{customdata}}"
                    "<extra></extra>",
                }
            )
        values = [v for row in table.rows for c in row.cells for v in (c.deploy.high, c.learn.high)]
        top = max([value for value in values if value is not None], default=2.0)
        axes = {
            "barmode": "group",
            "bargap": 0.18,
            "bargroupgap": 0.0,
            "xaxis": {"title": {"text": "data size"}, "type": "category"},
            "yaxis": {"title": {"text": "relative CTR"}, "range": [1, min(top + 0.02, 4.0)]},
        }
        panels.append(Panel(named, {"data": data, "layout": axes}))
    return Figure(
        "figure4",
        "Figure 4. Data size",
        "Relative CTR on the evaluation log by the share of the data that was learned from. Bars "
        f"start at 1, the random policy. {_opacities(report)}. Whiskers: 95 % intervals. "
        "Grey with a coloured edge: the lift over ε-greedy is not significant.",
        tuple(panels),
        legend(report),
        wide=True,
    )


def _opacities(report: Report) -> str:
    """Which explorers have pale bars, and which have full ones."""
    titles: dict[str, list[str]] = {"Pale": [], "Full": []}
    for explorer in explorers(row.policy for row in report.table.rows):
        titles["Pale" if explorer.opacity < 1 else "Full"].append(explorer.title)
    return ". ".join(f"{name} bars: {', '.join(each)}" for name, each in titles.items() if each)


def _whiskers(numbers: Sequence[Number]) -> Spec:
    def reach(end: float | None, value: float | None) -> float:
        return 0.0 if end is None or value is None else abs(end - value)

    return {
        "type": "data",
        "symmetric": False,
        "array": [reach(number.high, number.value) for number in numbers],
        "arrayminus": [reach(number.low, number.value) for number in numbers],
        "thickness": 1,
        "width": 0,
        "color": INK,
    }
