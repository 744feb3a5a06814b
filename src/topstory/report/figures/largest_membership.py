"""Figure 5: users by their membership in the closest cluster."""

from __future__ import annotations

from topstory.report.figures.figure import Figure, Panel
from topstory.report.records import Histogram, Report
from topstory.report.style import style_of


def memberships(report: Report) -> Figure | None:
    """Figure 5 of a report; None if it has no memberships."""
    found = report.histogram
    return None if found is None else membership_figure(found, "Users of the tuning log")


def membership_figure(found: Histogram, whose: str = "Users") -> Figure:
    """Figure 5 of any users."""
    middles = [(low + high) / 2 for low, high in zip(found.edges, found.edges[1:], strict=False)]
    bars = {
        "type": "bar",
        "x": middles,
        "y": list(found.shares),
        "marker": {"color": style_of("linucb-disjoint").colour},
        "hovertemplate": "%{x:.3f}: %{y:.1%} of users<extra></extra>",
    }
    axes = {
        "bargap": 0.06,
        "xaxis": {"title": {"text": "largest membership"}, "range": [0, 1]},
        "yaxis": {"title": {"text": "share of users"}, "tickformat": ".0%"},
    }
    return Figure(
        "figure5",
        "Figure 5. Largest memberships",
        f"{whose} by their membership in the closest of the clusters: "
        f"{100 * found.above_half:.0f} % of them are above 0.5 (the paper: 85 %), "
        f"{100 * found.above_four_fifths:.0f} % above 0.8 (the paper: 40 %).",
        (Panel("largest membership", {"data": [bars], "layout": axes}),),
    )
