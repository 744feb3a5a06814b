"""All tests of whether articles were shown uniformly at random, as one family.

The more tests, the likelier a fair log fails one by chance. So the p-values are adjusted by Holm's
method (1979): over all tests together, a fair log fails any with a probability of at most the
level, however the tests depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from topstory.events.quality.independence import (
    Finding,
    by_visitor,
    in_sequence,
    over_time,
    within_pools,
    within_segments,
)
from topstory.events.quality.pairs import from_pairs
from topstory.events.quality.prediction import from_contexts
from topstory.events.quality.uniformity import Uniformity

if TYPE_CHECKING:
    from topstory.events.log import EventLog

SIGNIFICANCE_LEVEL = 0.001  # of all tests together: a fair log fails once in a thousand
SEQUENCE_LEVEL = SIGNIFICANCE_LEVEL / 8  # of one test of eight
MAX_APART = 64
THINNED = "; the tests take 1 event in "


class Check(msgspec.Struct, frozen=True):
    """One of the tests. A small adjusted p-value means not uniform."""

    name: str  # articles, sequence, pools, time, segments, visitors, contexts or pairs
    events: int  # that were tested
    p_value: float | None  # None: not tested
    adjusted_p: float | None  # by Holm's method, over all tests
    text: str  # what was found, or why it was not tested
    uneven: tuple[str, ...] = ()  # numbers of pools, or stretches of time, that are uneven

    @property
    def failed(self) -> bool:
        """Whether the articles were not shown uniformly, by this test."""
        return self.adjusted_p is not None and self.adjusted_p < SIGNIFICANCE_LEVEL


def randomness_checks(log: EventLog, found: Uniformity) -> tuple[Check, ...]:
    """All tests of a log, whose articles as such were tested already.

    >>> from topstory.events import EventLog
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> log = EventLog.from_arrays(
    ...     np.ones((2000, 1)), [["a", "b"]], [0] * 2000, ["b", "a"] * 1000, np.ones(2000))
    >>> [check.name for check in randomness_checks(log, log.uniformity()) if check.failed]
    ['sequence']
    """
    log, sequence, apart = _independent(log)
    if apart > 1:
        found = log.uniformity()
    text = f"chi-square {found.statistic:,.1f} with {found.degrees_of_freedom} degrees of freedom"
    articles = Finding("articles", found.events, found.p_value, text)
    if found.not_tested is not None:
        articles = Finding("articles", 0, None, found.not_tested)
    others = (within_pools, over_time, within_segments, by_visitor, from_contexts, from_pairs)
    return adjusted([articles, sequence, *(test(log) for test in others)])


def _independent(log: EventLog) -> tuple[EventLog, Finding, int]:
    """Events so far apart that they do not repeat each other, the test of that, and how far.

    Some sites choose at random, and then show what was chosen for a minute: successive events
    repeat it, and each counts for less. So take every 2nd, 4th, … event if these do not.
    """
    first = found = in_sequence(log)
    apart = 1
    while found.p_value is not None and found.p_value < SEQUENCE_LEVEL and apart < MAX_APART:
        apart *= 2
        found = in_sequence(log, apart)
    if apart == 1 or found.p_value is None or found.p_value < SEQUENCE_LEVEL:
        return log, first, 1
    text = f"{first.text}{THINNED}{apart}, which do not"
    return log[::apart], Finding(found.name, found.events, found.p_value, text), apart


def adjusted(findings: Sequence[Finding]) -> tuple[Check, ...]:
    """Holm's adjusted p-values.

    >>> one, two = Finding("time", 9, 0.01, ""), Finding("pools", 9, 0.04, "")
    >>> [check.adjusted_p for check in adjusted([two, one, Finding("visitors", 0, None, "none")])]
    [0.04, 0.02, None]
    """
    tested = sorted(f.p_value for f in findings if f.p_value is not None)
    holm: dict[float, float] = {}
    largest = 0.0
    for i, p in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - i) * p))
        holm.setdefault(p, largest)
    return tuple(
        Check(
            name=f.name,
            events=f.events,
            p_value=f.p_value,
            adjusted_p=None if f.p_value is None else holm[f.p_value],
            text=f.text,
            uneven=f.uneven,
        )
        for f in findings
    )
