"""A figure: a few plots side by side, or below each other on a phone.

Plots are plain data for plotly.js. The page sets the colours of text and grid, and replaces the
colour "ink" by the colour of its text.
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
    wide: bool = False  # each panel takes the whole width of the page


def legend(report: Report) -> tuple[tuple[str, str], ...]:
    """Every policy and its name in the paper."""
    return tuple((row.policy, row.name) for row in report.table.rows)
