"""Numbers as text."""

from __future__ import annotations

from topstory.cli.reports.finite import Ends

NO_VALUE = "–"


def rate(per_second: float) -> str:
    """A number of events per second.

    >>> rate(12_345_678), rate(4_321), rate(12)
    ('12.3 M events/s', '4.3 k events/s', '12 events/s')
    """
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        if per_second >= scale:
            return f"{per_second / scale:.1f} {unit} events/s"
    return f"{per_second:.0f} events/s"


def number(value: float | None, digits: int, sign: str = "") -> str:
    """A number with so many decimals, or a dash for None.

    >>> number(1.23456, 3), number(12.0, 1, "+"), number(None, 3)
    ('1.235', '+12.0', '–')
    """
    return NO_VALUE if value is None else f"{value:{sign}.{digits}f}"


def interval(ends: Ends, digits: int, sign: str = "") -> str:
    """Both ends of an interval.

    >>> interval((0.0312, 0.0346), 3), interval(None, 3)
    ('[0.031…0.035]', '')
    """
    if ends is None:
        return ""
    return f"[{number(ends[0], digits, sign)}…{number(ends[1], digits, sign)}]"


def count(value: int, noun: str) -> str:
    """A number of things.

    >>> count(1, "event"), count(1200, "event")
    ('1 event', '1,200 events')
    """
    return f"{value:,} {noun}{'' if value == 1 else 's'}"
