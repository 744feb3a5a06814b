"""The records that a report is drawn from. Nothing is computed after this point.

`topstory.studies` fills them.
"""

from __future__ import annotations

import math

import msgspec


class Number(msgspec.Struct, frozen=True):
    """A number and its 95 % interval; None for what is unknown."""

    value: float | None
    low: float | None = None
    high: float | None = None
    sure: bool | None = None  # of a difference: whether its sign is sure, of all those compared


def finite(value: float) -> float | None:
    """The value, or None if it is not a finite number: JSON has no others.

    >>> finite(1.5), finite(float("nan"))
    (1.5, None)
    """
    return float(value) if math.isfinite(value) else None


class Cell(msgspec.Struct, frozen=True):
    """One policy at one data size: a pair of columns of the paper's Table 1."""

    size: float
    parameters: dict[str, float]
    repeats: int
    deploy: Number
    learn: Number
    deploy_lift: Number  # over ε-greedy; 0.1 is 10 % more
    learn_lift: Number
    best_deploy: bool  # the highest of its column
    best_learn: bool
    paper_deploy: float | None = None
    paper_learn: float | None = None
    paper_deploy_lift: float | None = None
    paper_learn_lift: float | None = None
    total: float | None = None  # relative CTR of both buckets at the site's split
    true_deploy: float | None = None  # what the simulator knows; None for a real log
    true_learn: float | None = None
    day_sd: float | None = None  # of the deployment bucket, between the days of the log


class Row(msgspec.Struct, frozen=True):
    """One policy: a row of the table."""

    policy: str
    name: str  # the paper's
    cells: tuple[Cell, ...]  # one for each size


class Table1(msgspec.Struct, frozen=True):
    """Relative CTRs on the evaluation log, both buckets, every data size."""

    sizes: tuple[float, ...]
    rows: tuple[Row, ...]
    omniscient: Number
    paper_omniscient: float


class CurvePoint(msgspec.Struct, frozen=True):
    """One value of the parameter."""

    parameter: float
    deploy: Number
    learn: Number
    chosen: bool


class Curve(msgspec.Struct, frozen=True):
    """A policy's tuning curve at one data size (Figure 2)."""

    policy: str
    name: str
    parameter: str  # the name of the tuned one
    size: float
    points: tuple[CurvePoint, ...]


class Lifted(msgspec.Struct, frozen=True):
    """One article: its CTR for a random user, and for the users a policy chose it for."""

    article: str
    trials: int
    base: float  # relative CTRs
    lifted: float


class Scatter(msgspec.Struct, frozen=True):
    """The articles that a policy chose most often (Figure 3)."""

    policy: str
    name: str
    panel: str  # of the model, as the registry calls it
    articles: tuple[Lifted, ...]
    mean_lift: float | None  # lifted over base - 1, weighted by trials


class Histogram(msgspec.Struct, frozen=True):
    """Users by their largest membership (Figure 5)."""

    edges: tuple[float, ...]
    shares: tuple[float, ...]  # of users, one for each bin
    above_half: float
    above_four_fifths: float


class Series(msgspec.Struct, frozen=True):
    """A policy's deployment CTR over time, all data, relative to the random policy's throughout."""

    policy: str
    name: str
    times: tuple[str, ...]  # ISO 8601 in UTC, or the number of the first event
    relative_ctr: tuple[float | None, ...]
    random: tuple[float | None, ...]  # the log's own, over the same windows


class LogDescription(msgspec.Struct, frozen=True):
    """One log of the study."""

    role: str  # tuning, evaluation, exploration
    properties: tuple[tuple[str, str], ...]  # label and value
    verdict: tuple[str, ...]
    fit: bool
    days: tuple[tuple[str, int, float], ...]  # date, events, CTR


class Report(msgspec.Struct, frozen=True):
    """The whole report."""

    title: str
    summary: tuple[str, ...]
    table: Table1
    curves: tuple[Curve, ...]
    tuning_omniscient: Number
    scatters: tuple[Scatter, ...]
    histogram: Histogram | None
    series: tuple[Series, ...]
    logs: tuple[LogDescription, ...]
    settings: tuple[tuple[str, str], ...]  # enough to repeat it
    command: str
    warnings: tuple[str, ...] = ()
    learning_share: float = 0.1  # of the traffic, in totals

    @property
    def simulated(self) -> bool:
        """Whether the truth is known: only a simulator knows it."""
        return any(cell.true_deploy is not None for row in self.table.rows for cell in row.cells)
