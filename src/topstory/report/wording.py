"""Numbers as text of a report."""

from __future__ import annotations

import re

from topstory.policies.registry import SYMBOLS
from topstory.report.records import Cell, Number

NO_VALUE = "–"
MAX_LIFT = 10.0  # that is written as a number: beyond ten times as much, that it is more


def worded(text: str, binary: bool) -> str:
    """A text as it is where payoffs are clicks; otherwise with payoffs in the place of CTRs.

    >>> worded("CTR over time. Relative CTRs", True), worded("CTR over time. Relative CTRs", False)
    ('CTR over time. Relative CTRs', 'Payoff over time. Relative payoffs')
    """
    if binary:
        return text
    text = re.sub(r'(^|[.>] |[>"])CTR', r"\1Payoff", text)
    return text.replace("CTR", "payoff").replace("clicks", "payoffs")


def ctr(value: float | None) -> str:
    """A relative CTR, with the paper's three decimals.

    >>> ctr(1.5), ctr(None)
    ('1.500', '–')
    """
    return NO_VALUE if value is None else f"{value:.3f}"


def percent(value: float | None) -> str:
    """A lift.

    >>> percent(0.1234), percent(-0.05), percent(0.0), percent(8e9)
    ('12.3%', '−5.0%', '0%', '> 1,000%')
    """
    if value is None:
        return NO_VALUE
    if value > MAX_LIFT:
        return f"> {100 * MAX_LIFT:,.0f}%"
    rounded = round(100 * value, 1)
    return f"{rounded:.1f}%".replace("-", "−") if rounded else "0%"


def per_visit(value: float | None) -> str:
    """What a visit earns, or an end of its interval.

    >>> per_visit(0.034331), per_visit(9.3e-05), per_visit(-0.05), per_visit(12.3456)
    ('0.03433', '0.0001', '−0.05', '12.35')
    """
    if value is None:
        return NO_VALUE
    text = f"{value:.4g}" if abs(value) >= 0.001 else f"{value:.4f}"
    return text.replace("-", "−")


def amount(value: float) -> str:
    """A number of clicks, or a payoff, in as many digits as one reads.

    >>> amount(6480.2), amount(12.345), amount(0.01234), amount(-3.0)
    ('6,480', '12.3', '0.0123', '−3')
    """
    size = abs(value)
    text = f"{value:,.0f}" if size >= 100 else f"{value:.3g}"
    return text.replace("-", "−")


def cost(value: float) -> str:
    """The clicks in 100,000 visits that exploring loses, in whole numbers where there are many.

    >>> cost(34.4), cost(0.25), cost(-12.3), cost(0.0)
    ('34', '0.25', '−12', '0')
    """
    text = f"{value:,.0f}" if abs(value) >= 10 or value == 0 else f"{value:.2g}"
    return text.replace("-", "−")


def share(value: float) -> str:
    """A share of the data.

    >>> share(0.05), share(1.0)
    ('5 %', '100 %')
    """
    return f"{100 * value:g} %"


def unbroken(text: str) -> str:
    r"""A sentence that does not break inside "ε-greedy" or "α = 1", or before a percent sign.

    >>> unbroken("ε-greedy, 5 %")
    'ε\u2011greedy, 5\xa0%'
    """
    joined = text.replace(" %", "\xa0%").replace(" = ", "\xa0=\xa0")
    return joined.replace("ε-greedy", "ε\N{NON-BREAKING HYPHEN}greedy")


def between(number: Number, lift: bool = False) -> str:
    """A 95 % interval; empty if it is unknown.

    >>> between(Number(1.5, 1.4, 1.6))
    '1.400 to 1.600'
    """
    if number.low is None or number.high is None:
        return ""
    write = percent if lift else ctr
    return f"{write(number.low)} to {write(number.high)}"


def parameters(cell: Cell) -> str:
    """The tuned parameters of a policy.

    >>> from topstory.report import Number
    >>> parameters(Cell(1.0, {"alpha": 0.4}, 1, *[Number(1.0)] * 4, False, False))
    'α = 0.4'
    """
    return ", ".join(f"{SYMBOLS.get(name, name)} = {v:g}" for name, v in cell.parameters.items())


def tip(cell: Cell, bucket: str) -> str:
    """The tooltip of a cell."""
    number, lift = (
        (cell.deploy, cell.deploy_lift) if bucket == "deploy" else (cell.learn, cell.learn_lift)
    )
    parts = [f"95 % interval {between(number)}"] if between(number) else []
    if between(lift, lift=True):
        sure = "" if lift.sure else ", not significant"
        parts.append(f"lift {between(lift, lift=True)}{sure}")
    if bucket == "deploy" and cell.day_sd is not None:
        parts.append(f"days differ by {cell.day_sd:.2f} (standard deviation)")
    if bucket == "deploy" and cell.total is not None:
        parts.append(f"both buckets together {ctr(cell.total)}")
    if bucket == "deploy" and cell.cost is not None:
        parts.append(f"exploring costs {cost(cell.cost)} clicks in 100,000 visits")
    parts.append(parameters(cell))
    if cell.repeats > 1:
        parts.append(f"average of {cell.repeats} seeds")
    return "; ".join(parts)
