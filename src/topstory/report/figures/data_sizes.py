"""Figure 4: relative CTR by the share of the data that was learned from."""

from __future__ import annotations

from topstory.report.figures.figure import (
    BUCKETS,
    Figure,
    Panel,
    Spec,
    few,
    hidden,
    legend,
    whiskers,
)
from topstory.report.records import Number, Report, Row
from topstory.report.style import style_of
from topstory.report.wording import between, share

ASIDE = 0.07  # policies stand a little beside each other: else their intervals hide one another


def by_size(report: Report) -> Figure:
    """Figure 4, as points: sixty bars can't be read on a phone."""
    table = report.table
    sizes = list(reversed(table.sizes))
    axes = {
        "xaxis": {
            "title": {"text": "data size"},
            "tickvals": list(range(len(sizes))),
            "ticktext": [share(size) for size in sizes],
            "range": [-0.5, len(sizes) - 0.5],
        },
        "yaxis": {"title": {"text": "relative CTR"}},
    }
    shown = few(report)
    panels = [
        Panel(
            named,
            {
                "data": [_line(row, bucket, sizes, shown) for row in table.rows],
                "layout": axes,
            },
        )
        for bucket, named in BUCKETS.items()
    ]
    return Figure(
        "figure4",
        "With less data?",
        "Relative CTR on the evaluation log by the share of the data that was learned from; 1 is "
        "the random policy. Lines up and down: 95 % intervals. Hollow: the lift over ε-greedy is "
        "not significant. Click a name to show or hide a policy.",
        tuple(panels),
        paper="Figure 4. Data size",
        legend=legend(report),
        hidden=hidden(report),
    )


def _line(row: Row, bucket: str, sizes: list[float], shown: tuple[str, ...]) -> Spec:
    style = style_of(row.policy)
    cells = {cell.size: cell for cell in row.cells}
    numbers: list[Number] = [getattr(cells[size], bucket) for size in sizes]
    lifts: list[Number] = [getattr(cells[size], f"{bucket}_lift") for size in sizes]
    hollow = [lift.low is not None and not lift.sure for lift in lifts]
    place = shown.index(row.policy) if row.policy in shown else len(shown)
    aside = ASIDE * (place - len(shown) / 2)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": row.name,
        "meta": {"policy": row.policy},
        "x": [at + aside for at in range(len(sizes))],
        "y": [number.value for number in numbers],
        "line": {"color": style.colour, "dash": style.dash, "width": 1.5},
        "marker": {
            "color": style.colour,
            "size": 8,
            "symbol": ["circle-open" if each else "circle" for each in hollow],
            "line": {"width": 2, "color": style.colour},
        },
        "error_y": whiskers(numbers, style.colour),
        "customdata": [
            f"{share(size)}: {between(number)}" for size, number in zip(sizes, numbers, strict=True)
        ],
        "hovertemplate": f"{row.name}<br>CTR %{{y:.3f}}<br>%{{customdata}}<extra></extra>",
    }
