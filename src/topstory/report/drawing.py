"""The figures as SVG and PNG, drawn by matplotlib.

Plotly's own export needs a browser. Matplotlib needs none, and draws the same panels.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from topstory.report.figures import INK, Figure, Panel, Spec

FORMATS = ("svg", "png")
GREY = "#5b6372"
MAX_TITLE_LETTERS = 46  # on one line, where two panels are side by side
STYLE: Any = {  # Any: the stubs list every key
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#b9c0cb",
    "axes.labelcolor": "#1d2129",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e8ebf0",
    "legend.frameon": False,
    "svg.hashsalt": "topstory",  # the same figure gives the same bytes
    "svg.fonttype": "none",
}


def draw(figure: Figure) -> Mapping[str, bytes]:
    """The picture in each format: the figure as it first appears in the report, on white."""
    with mpl.rc_context(STYLE):
        columns = 1 if figure.wide else min(2, len(figure.panels))
        rows = -(-len(figure.panels) // columns)
        drawing = Drawing(figsize=(3.6 * columns + (0 if columns > 1 else 3.0), 2.7 * rows + 0.5))
        axes = drawing.subplots(rows, columns, squeeze=False)
        for place, panel in zip(axes.flat, figure.panels, strict=False):
            _panel(place, panel, set(figure.hidden))
        if figure.legend:
            named: dict[str, Any] = {}
            for place in axes.flat:
                for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
                    named.setdefault(label, handle)
            drawing.legend(named.values(), named.keys(), loc="lower center", ncols=5, fontsize=7)
        drawing.tight_layout(rect=(0, 0.5 / (2.7 * rows + 0.5) if figure.legend else 0, 1, 1))
        return {kind: _saved(drawing, kind) for kind in FORMATS}


def _saved(drawing: Drawing, kind: str) -> bytes:
    out = io.BytesIO()
    drawing.savefig(
        out,
        format=kind,
        dpi=160,
        facecolor="white",
        metadata={"Date": None} if kind == "svg" else {"Software": None},
    )
    return out.getvalue()


def _panel(axes: Axes, panel: Panel, hidden: set[str]) -> None:
    layout = panel.spec["layout"]
    traces = [
        trace
        for trace in panel.spec["data"]
        if trace.get("visible", True) and trace.get("meta", {}).get("policy") not in hidden
    ]
    bars = [trace for trace in traces if trace["type"] == "bar"]
    for place, trace in enumerate(bars):
        _bars(axes, trace, place, len(bars))
    for trace in traces:
        if trace["type"] == "scatter":
            _DRAWN[trace["mode"]](axes, trace)
    title = panel.title
    broken = title if len(title) <= MAX_TITLE_LETTERS else title.replace(", ", ",\n")
    axes.set_title(broken, fontsize=8, fontweight="bold", loc="left")
    axes.set_xlabel(layout["xaxis"]["title"]["text"])
    axes.set_ylabel(layout["yaxis"]["title"]["text"])
    if layout["xaxis"].get("type") == "log":
        axes.set_xscale("log")
        values = sorted({x for trace in traces for x in trace["x"]})
        axes.set_xticks(values, [f"{value:g}" for value in values], fontsize=6)
        axes.minorticks_off()
    elif "ticktext" in layout["xaxis"]:
        axes.set_xticks(layout["xaxis"]["tickvals"], layout["xaxis"]["ticktext"])
    for ends, limit in (("xaxis", axes.set_xlim), ("yaxis", axes.set_ylim)):
        if "range" in layout[ends]:
            limit(*layout[ends]["range"])


def _colour(value: str) -> str:
    return GREY if value == INK else value


def _line(axes: Axes, trace: Spec) -> None:
    style = {"solid": "-", "dot": ":"}.get(trace["line"]["dash"], "--")
    x = trace["x"]
    if isinstance(x[0], str):
        import numpy as np

        x = np.array(x, "M8[us]") if "T" in x[0] else [int(each) for each in x]
        axes.tick_params(axis="x", labelrotation=20, labelsize=6)
    axes.plot(
        x,
        [float("nan") if y is None else y for y in trace["y"]],
        style,
        color=_colour(trace["line"]["color"]),
        linewidth=1.2,
        label=trace.get("name"),
    )


def _curve(axes: Axes, trace: Spec) -> None:
    _line(axes, trace)
    colour = trace["marker"]["color"]
    if (error := trace.get("error_y")) is not None:
        known = [place for place, y in enumerate(trace["y"]) if y is not None]
        axes.errorbar(
            [trace["x"][place] for place in known],
            [trace["y"][place] for place in known],
            [[error[side][place] for place in known] for side in ("arrayminus", "array")],
            fmt="none",
            ecolor=colour,
            elinewidth=0.6,
        )
    for x, y, symbol in zip(trace["x"], trace["y"], trace["marker"]["symbol"], strict=True):
        if y is not None:
            chosen = symbol != "circle"
            axes.plot(
                x,
                y,
                "o",
                color=colour,
                markersize=6 if chosen else 3,
                fillstyle="none" if chosen else "full",
            )


def _cloud(axes: Axes, trace: Spec) -> None:
    marker = trace["marker"]
    circle = marker["symbol"].startswith("circle")
    axes.plot(
        trace["x"],
        trace["y"],
        "o" if circle else "x",
        color=marker["color"],
        markersize=4,
        fillstyle="none" if circle else "full",
        linestyle="none",
        label=trace["name"],
    )


def _bars(axes: Axes, trace: Spec, place: int, count: int) -> None:
    if isinstance(trace["x"][0], str):
        width = 0.82 / count
        x = [i + (place - (count - 1) / 2) * width for i in range(len(trace["x"]))]
        axes.set_xticks(range(len(trace["x"])), trace["x"])
    else:
        x, width = trace["x"], 0.94 * (trace["x"][1] - trace["x"][0])
    error = trace.get("error_y")
    axes.bar(
        x,
        [0.0 if y is None else y for y in trace["y"]],
        width,
        color=trace["marker"]["color"],
        edgecolor=trace["marker"].get("line", {}).get("color"),
        linewidth=trace["marker"].get("line", {}).get("width", 0),
        alpha=trace["marker"].get("opacity", 1),
        label=trace.get("name"),
        yerr=None if error is None else [error["arrayminus"], error["array"]],
        error_kw={"elinewidth": 0.6, "ecolor": GREY},
    )


_DRAWN: dict[str, Callable[[Axes, Spec], None]] = {
    "lines": _line,
    "lines+markers": _curve,
    "markers": _cloud,
}
