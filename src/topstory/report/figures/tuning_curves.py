"""Figure 2: relative CTR against each tuned parameter on the tuning log."""

from __future__ import annotations

from collections.abc import Sequence

from topstory.policies.registry import REGISTRY, SYMBOLS, TUNED
from topstory.report.figures.figure import (
    BUCKETS,
    INK,
    Figure,
    Panel,
    Spec,
    hidden,
    legend,
    whiskers,
)
from topstory.report.records import Curve, Number, Report
from topstory.report.style import style_of
from topstory.report.wording import between, ctr


def tuning(report: Report) -> Figure:
    """Figure 2."""
    panels = []
    drawn = dict.fromkeys(curve.parameter for curve in report.curves)
    symbols = " or ".join(SYMBOLS[parameter] for parameter in TUNED if parameter in drawn)
    for bucket, named in BUCKETS.items():
        for parameter in TUNED:
            curves = [curve for curve in report.curves if curve.parameter == parameter]
            data = [_curve(curve, bucket, report.table.sizes[0]) for curve in curves]
            if not data:
                continue
            if report.tuning_omniscient.value is not None:
                data.append(_omniscient(curves, report.tuning_omniscient.value))
            layout = _curve_axes(SYMBOLS[parameter], curves)
            panels.append(Panel(f"{_explorers(curves)}, {named}", {"data": data, "layout": layout}))
    return Figure(
        "figure2",
        "How much exploration?",
        f"Relative CTR on the tuning log against {symbols}; the ringed point "
        "was chosen. Lines up and down: 95 % intervals. Dotted: omniscient, which knows each "
        "article's CTR in hindsight but not the user.",
        tuple(panels),
        paper="Figure 2. Tuning curves",
        legend=legend(report),
        hidden=hidden(report),
        sizes=report.table.sizes,
    )


def _explorers(curves: Sequence[Curve]) -> str:
    """Those of the policies that are drawn."""
    return ", ".join(dict.fromkeys(REGISTRY[curve.policy].explorer.title for curve in curves))


def _curve_axes(axis: str, curves: Sequence[Curve]) -> Spec:
    tried = sorted({point.parameter for curve in curves for point in curve.points})
    ticks = {"tickvals": tried, "ticktext": [f"{value:g}" for value in tried]}
    ticks["tickfont"] = {"size": 10}  # on a phone the labels would run into each other
    return {
        "xaxis": {"title": {"text": axis}, "type": "log", **ticks},
        "yaxis": {"title": {"text": "relative CTR"}},
    }


def _curve(curve: Curve, bucket: str, shown: float) -> Spec:
    style = style_of(curve.policy)
    numbers: list[Number] = [getattr(point, bucket) for point in curve.points]
    ring = [11 if point.chosen else 6 for point in curve.points]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": curve.name,
        "meta": {"policy": curve.policy, "size": curve.size},
        "visible": curve.size == shown,
        "x": [point.parameter for point in curve.points],
        "y": [number.value for number in numbers],
        "line": {"color": style.colour, "dash": style.dash, "width": 2},
        "marker": {
            "color": style.colour,
            "size": ring,
            "symbol": ["circle-open-dot" if point.chosen else "circle" for point in curve.points],
            "line": {"width": 2, "color": style.colour},
        },
        "error_y": whiskers(numbers, style.colour),
        "customdata": [between(number) for number in numbers],
        "hovertemplate": f"{curve.name}<br>{SYMBOLS[curve.parameter]} = %{{x}}<br>"
        "CTR %{y:.3f}<br>%{customdata}<extra></extra>",
    }


def _omniscient(curves: Sequence[Curve], value: float) -> Spec:
    ends = [point.parameter for curve in curves for point in curve.points]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [min(ends), max(ends)],
        "y": [value, value],
        "line": {"dash": "dot", "width": 1.5, "color": INK},
        "hovertemplate": f"omniscient {ctr(value)}<extra></extra>",
    }
