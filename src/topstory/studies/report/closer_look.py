"""What an evaluation rests on, as sections of its report: one policy after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import PurePath

from topstory.evaluation import Evaluation
from topstory.evaluation.off_policy.value import Examination, Quantity, WeightBin
from topstory.report.records import TableRow, TableSection
from topstory.report.wording import NO_VALUE, per_visit

MAX_POLICIES = 3  # so that the page stays readable; the best ones
DOUBT = 4.0  # standard errors of a mean weight from 1


def closer_look(found: Evaluation) -> tuple[TableSection, ...]:
    """The sections; none if nobody asked for them."""
    best = sorted(found.examined.values(), key=lambda each: -_order(found, each))
    alone = len(found.examined) == 1
    return tuple(
        section
        for each in best[:MAX_POLICIES]
        for section in _sections(found, each, "" if alone else f": {PurePath(each.policy).name}")
    )


def _order(found: Evaluation, each: Examination) -> float:
    value = found[each.policy].value.value
    return value if value == value else -math.inf


def _sections(found: Evaluation, each: Examination, whose: str) -> Iterator[TableSection]:
    key = "" if not whose else "-" + "".join(c if c.isalnum() else "-" for c in each.policy)
    yield TableSection(
        f"turns{key}",
        f"What would change the conclusion{whose}?",
        "Each of these says how far the result depends on something that could be otherwise.",
        sentences=each.turns,
    )
    yield TableSection(
        f"estimators{key}",
        f"Do the estimators agree{whose}?",
        "The value by each of them. snips, ips and dr should agree within their intervals. The "
        "last three trade noise for a bias that nobody sees, so their intervals are that of dr.",
        ("estimator", "per visit", "95 % interval"),
        tuple(
            TableRow((name, per_visit(value.value), _ends(value)))
            for name, value in each.estimates.items()
        ),
    )
    yield TableSection(
        f"weights{key}",
        f"Do a few events decide{whose}?",
        "Events by their weight: how much likelier the policy is to show what was shown than the "
        "log was. The bar is their share of all weight. Few events with most of the weight mean "
        "that the value rests on those few.",
        ("weight", "share of events", "share of weight"),
        tuple(
            TableRow((_range(one), f"{one.events:.1%}", f"{one.weight:.1%}"), one.weight)
            for one in each.weights
        ),
    )
    yield TableSection(
        f"articles{key}",
        f"Does the log show what the policy would{whose}?",
        "The articles that the policy would show most; the bar is their share of what it shows. "
        f"Propensities: {found.propensities}. If they are right, an article's mean weight is 1 "
        "within its error; where it is not, in red, they are wrong for that article.",
        ("article", "the policy shows it", "offered", "shown", "mean weight", "± error"),
        tuple(
            TableRow(
                (
                    *(one.article, f"{one.wanted:.1%}", f"{one.offered:,}", f"{one.shown:,}"),
                    *(f"{one.mean_weight:.3f}", f"{one.error:.3f}"),
                ),
                min(1.0, one.wanted),
                abs(one.mean_weight - 1) > DOUBT * one.error + 1e-6,
            )
            for one in each.articles
        ),
    )


def _range(one: WeightBin) -> str:
    if one.high == 0:
        return "0: never shown by the policy"
    if math.isinf(one.high):
        return f"above {one.low:g}"
    return f"{one.low:g} to {one.high:g}"


def _ends(value: Quantity) -> str:
    low, high = value.best_interval
    return f"{per_visit(low)} to {per_visit(high)}" if low == low else NO_VALUE
