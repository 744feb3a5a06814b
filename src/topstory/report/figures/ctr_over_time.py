"""CTR over time, for each policy."""

from __future__ import annotations

from topstory.policies.registry import REGISTRY
from topstory.report.figures.figure import INK, Figure, Panel, legend
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
                "width": 2,
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
        "CTR over time",
        "Deployment bucket on the evaluation log, with all data. Dotted: the random policy. Click "
        "a name to show or hide a policy.",
        (Panel("deployment bucket", {"data": [*lines, random], "layout": axes}),),
        legend(report),
        hidden=tuple(each.policy for each in report.series if not _visible(each.policy)),
    )


def _visible(policy: str) -> bool:
    """Whether a policy is shown at first: a dozen lines are too many.

    Hidden are the models that Figure 3 leaves out, and ε-greedy (drawn pale) with user features.

    >>> [_visible(policy) for policy in ("egreedy", "egreedy-seg", "ucb-seg", "ucb-warm")]
    [True, False, True, False]
    """
    entry = REGISTRY[policy]
    pale = entry.explorer.opacity < 1
    return entry.model.panel is not None and not (pale and entry.contextual)
