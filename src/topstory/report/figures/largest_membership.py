"""Figure 5: users by their membership in the closest cluster."""

from __future__ import annotations

from topstory.report.figures.figure import Figure, Panel
from topstory.report.records import Histogram, Report
from topstory.report.style import style_of


def memberships(report: Report) -> Figure | None:
    """Figure 5 of a report; None if it has no memberships."""
    found = report.histogram
    if found is None:
        return None
    return membership_figure(found, "Users of the tuning log", report.simulated)


def membership_figure(found: Histogram, whose: str = "Users", published: bool = True) -> Figure:
    """Figure 5 of any users, with or without the paper's own numbers."""

    def theirs(share: int) -> str:
        return f" (the paper: {share} %)" if published else ""

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
        "Do visitors fall into groups?",
        f"{whose} by their membership in the closest of the clusters: "
        f"{100 * found.above_half:.0f} % of them are above 0.5{theirs(85)}, "
        f"{100 * found.above_four_fifths:.0f} % above 0.8{theirs(40)}.",
        (Panel("largest membership", {"data": [bars], "layout": axes}),),
        paper="Figure 5. Largest memberships",
    )
