"""Relative CTR by how late payoffs come."""

from __future__ import annotations

from topstory.report.figures.figure import BUCKETS, Figure, Panel, Spec, hidden, legend, whiskers
from topstory.report.records import Late, Report
from topstory.report.style import style_of


def by_delay(report: Report) -> Figure | None:
    """Relative CTR by delay; None if the study tried none."""
    if not report.late:
        return None
    axes = {
        "xaxis": {
            "title": {"text": "minutes until a payoff is known"},
            "tickvals": list(range(len(report.late[0].minutes))),
            "ticktext": [f"{each:g}" for each in report.late[0].minutes],
        },
        "yaxis": {"title": {"text": "relative CTR"}},
    }
    panels = tuple(
        Panel(named, {"data": [_line(each, bucket) for each in report.late], "layout": axes})
        for bucket, named in BUCKETS.items()
    )
    return Figure(
        "by_delay",
        "With late payoffs?",
        "Relative CTR on the evaluation log by how late a policy learns what was clicked, with all "
        "data and one learning path; 1 is the random policy. Lines up and down: 95 % intervals. "
        "Click a name to show or hide a policy.",
        panels,
        paper="CTR by delay",
        legend=legend(report),
        hidden=hidden(report),
    )


def _line(late: Late, bucket: str) -> Spec:
    style, numbers = style_of(late.policy), getattr(late, bucket)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": late.name,
        "meta": {"policy": late.policy},
        "x": list(range(len(late.minutes))),
        "y": [number.value for number in numbers],
        "line": {"color": style.colour, "dash": style.dash, "width": 1.5},
        "marker": {"color": style.colour, "size": 8},
        "error_y": whiskers(numbers, style.colour),
    }
