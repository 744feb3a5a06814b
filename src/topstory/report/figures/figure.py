"""A figure: a few plots side by side, or below each other on a phone.

Plots are plain data for plotly.js. The page sets the colours of text and grid, and replaces the
colour "ink" by the colour of its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from topstory.report.records import Number, Report

Spec = dict[str, Any]  # {"data": [...], "layout": {...}}
INK = "ink"
BASELINE = "egreedy"  # that every lift is over
BUCKETS = {"deploy": "deployment bucket", "learn": "learning bucket"}


class Panel(msgspec.Struct, frozen=True):
    """One plot."""

    title: str
    spec: Spec


class Figure(msgspec.Struct, frozen=True):
    """A figure of the report."""

    key: str  # names its files
    title: str  # the question that it answers
    caption: str
    panels: tuple[Panel, ...]
    paper: str = ""  # what the paper calls it
    legend: tuple[tuple[str, str], ...] = ()  # policy and name; a click hides or shows it
    hidden: tuple[str, ...] = ()  # policies that are hidden at first
    sizes: tuple[float, ...] = ()  # data sizes to switch between, if any
    wide: bool = False  # each panel takes the whole width of the page


def legend(report: Report) -> tuple[tuple[str, str], ...]:
    """Every policy and its name in the paper."""
    return tuple((row.policy, row.name) for row in report.table.rows)


def few(report: Report, most: int = 5) -> tuple[str, ...]:
    """The policies to show at first: a dozen are too many to tell apart.

    The recommended one, ε-greedy, and the best others.
    """
    chosen = [report.answer.recommended, BASELINE, *(dot.policy for dot in report.answer.dots)]
    return tuple(dict.fromkeys(policy for policy in chosen if policy is not None))[:most]


def hidden(report: Report) -> tuple[str, ...]:
    """The others, that a click on their name shows."""
    shown = few(report)
    return tuple(row.policy for row in report.table.rows if row.policy not in shown)


def whiskers(numbers: Sequence[Number], colour: str = INK) -> Spec:
    """The intervals of points or bars."""

    def reach(end: float | None, value: float | None) -> float:
        return 0.0 if end is None or value is None else abs(end - value)

    return {
        "type": "data",
        "symmetric": False,
        "array": [reach(number.high, number.value) for number in numbers],
        "arrayminus": [reach(number.low, number.value) for number in numbers],
        "thickness": 1,
        "width": 0,
        "color": colour,
    }
