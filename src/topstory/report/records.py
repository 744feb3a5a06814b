"""The records that a report is drawn from. Nothing is computed after this point.

`topstory.studies` fills them.
"""

from __future__ import annotations

import math

import msgspec

RECOMMENDED, AS_GOOD = "recommended", "may be as good"  # marks of a policy


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
    cost: float | None = None  # clicks in 100,000 visits that exploring loses at that split


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


class Late(msgspec.Struct, frozen=True):
    """A policy's relative CTR by how late payoffs come, all data."""

    policy: str
    name: str
    minutes: tuple[float, ...]
    deploy: tuple[Number, ...]
    learn: tuple[Number, ...]


class LogDescription(msgspec.Struct, frozen=True):
    """One log of the study."""

    role: str  # tuning, evaluation, exploration
    properties: tuple[tuple[str, str], ...]  # label and value
    verdict: tuple[str, ...]
    fit: bool
    days: tuple[tuple[str, int, float], ...]  # date, events, CTR


class Dot(msgspec.Struct, frozen=True):
    """One policy in the picture that answers the question."""

    policy: str  # as it was given
    name: str
    value: Number  # in the unit of the answer
    lift: float | None  # over the reference; 0.1 is 10 % more
    mark: str = ""  # RECOMMENDED, AS_GOOD or nothing


class Answer(msgspec.Struct, frozen=True):
    """The answer, for who has a minute: one picture and three sentences."""

    question: str
    sentences: tuple[str, ...]  # what to deploy; what it brings; how sure, and what is as good
    unit: str  # of the values, such as "clicks in 100,000 visits"
    reference: str  # what the line stands for: random articles, or what is shown today
    reference_value: float | None
    dots: tuple[Dot, ...]  # the best first

    @property
    def recommended(self) -> str | None:
        """The policy that is marked."""
        return next((dot.policy for dot in self.dots if dot.mark == RECOMMENDED), None)


class TableRow(msgspec.Struct, frozen=True):
    """A row of a section's table."""

    cells: tuple[str, ...]  # the first names the row
    bar: float | None = None  # from 0 to 1, drawn below the name; None: none
    doubtful: bool = False  # whether a reader should look twice


class TableSection(msgspec.Struct, frozen=True):
    """A table that answers one question, or sentences where it has no columns."""

    key: str
    title: str
    caption: str
    columns: tuple[str, ...] = ()
    rows: tuple[TableRow, ...] = ()
    sentences: tuple[str, ...] = ()


class AnswerPage(msgspec.Struct, frozen=True):
    """An answer with the numbers behind it: the report of `evaluate` and of `choose`."""

    command: str  # that made it
    answer: Answer
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # a policy each, as its dots are ordered
    notes: tuple[str, ...]  # what to know before using the numbers
    warnings: tuple[str, ...] = ()
    sections: tuple[TableSection, ...] = ()  # a closer look


class Report(msgspec.Struct, frozen=True):
    """The whole report."""

    title: str
    answer: Answer
    summary: tuple[str, ...]  # the sentences of the answer, and more
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
    binary: bool = True  # payoffs are 0 or 1: their mean is a CTR
    late: tuple[Late, ...] = ()  # one for each policy, if delays were asked for

    @property
    def simulated(self) -> bool:
        """Whether the truth is known: only a simulator knows it."""
        return any(cell.true_deploy is not None for row in self.table.rows for cell in row.cells)
