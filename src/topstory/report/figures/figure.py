"""What a figure is: a few panels side by side, each a plot of its own (on a phone, one by one).

Plots are plain data, as plotly.js takes it. The colours of text and grid are the page's: it puts
them in, and its ink wherever a colour is called "ink".
"""

from __future__ import annotations

from typing import Any

import msgspec

from topstory.report.records import Report

Spec = dict[str, Any]  # {"data": [...], "layout": {...}}
INK = "ink"
BUCKETS = {"deploy": "deployment bucket", "learn": "learning bucket"}


class Panel(msgspec.Struct, frozen=True):
    """One plot."""

    title: str
    spec: Spec


class Figure(msgspec.Struct, frozen=True):
    """A figure of the report."""

    key: str  # names its files
    title: str
    caption: str
    panels: tuple[Panel, ...]
    legend: tuple[tuple[str, str], ...] = ()  # policy and name; a click hides or shows it
    hidden: tuple[str, ...] = ()  # policies that are hidden at first
    sizes: tuple[float, ...] = ()  # data sizes to switch between, if any
    wide: bool = False  # a panel takes the page's whole width: there is much in it


def legend(report: Report) -> tuple[tuple[str, str], ...]:
    """Every policy and its name in the paper."""
    return tuple((row.policy, row.name) for row in report.table.rows)
