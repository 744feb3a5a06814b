"""CTR over time, for each policy."""

from __future__ import annotations

from topstory.report.figures.figure import INK, Figure, Panel, hidden, legend
from topstory.report.records import Report
from topstory.report.style import style_of


def over_time(report: Report) -> Figure | None:
    """CTR over time."""
    if not report.series:
        return None
    timed = not report.series[0].times[0].isdigit()
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": each.name,
            "meta": {"policy": each.policy},
            "x": list(each.times),
            "y": list(each.relative_ctr),
            "line": {
                "color": style_of(each.policy).colour,
                "dash": style_of(each.policy).dash,
                "width": 3.5 if each.policy == report.answer.recommended else 1.5,
            },
            "hovertemplate": f"{each.name}: %{{y:.2f}}<extra></extra>",
        }
        for each in report.series
    ]
    random = {
        "type": "scatter",
        "mode": "lines",
        "x": list(report.series[0].times),
        "y": list(report.series[0].random),
        "line": {"color": INK, "dash": "dot", "width": 1.5},
        "hovertemplate": "random: %{y:.2f}<extra></extra>",
    }
    axes = {
        "hovermode": "x unified",
        "xaxis": {"title": {"text": "time (UTC)" if timed else "event"}},
        "yaxis": {"title": {"text": "CTR / random's CTR over the whole log"}},
    }
    return Figure(
        "over_time",
        "Does it hold over time?",
        "Deployment bucket on the evaluation log, with all data. Thick: the recommended policy. "
        "Dotted: the random policy. Click a name to show or hide a policy.",
        (Panel("deployment bucket", {"data": [*lines, random], "layout": axes}),),
        paper="CTR over time",
        legend=legend(report),
        hidden=hidden(report),
    )
