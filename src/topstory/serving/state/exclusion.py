"""Records that count no more: an operator excluded what a key or a visitor did."""

from __future__ import annotations

from collections.abc import Sequence

from topstory.serving.journal.records import Decided, Entry, Excluded, Paid


class NotExcluded(Exception):
    """A state has learned from records that an exclusion names: it must be folded again."""

    def __init__(self, exclusion: Excluded) -> None:
        super().__init__("the state has learned from records that were excluded later")
        self.exclusion = exclusion


def excludes(exclusions: Sequence[Excluded], entry: Entry, decided: Decided | None) -> bool:
    """Whether a decision or payoff is excluded; a payoff comes with its decision.

    >>> held = [Excluded(first=5, last=9, key="web")]
    >>> shown = Decided("front", b"", "rain", 0, 1.0, 0, 0, True, key="web")
    >>> [excludes(held, Entry(n, 0, shown), None) for n in (4, 5, 9, 10)]
    [False, True, True, False]
    >>> excludes(held, Entry(12, 0, Paid(5, 1.0, "other")), shown)  # of an excluded decision
    True
    """
    record = entry.record
    if isinstance(record, Decided):
        return any(_names(each, entry.number, record.key, record) for each in exclusions)
    if isinstance(record, Paid) and decided is not None:
        return any(
            _names(each, record.decision, decided.key, decided)
            or _names(each, entry.number, record.key, decided)
            for each in exclusions
        )
    return False


def _names(exclusion: Excluded, number: int, key: str, decided: Decided) -> bool:
    return (
        exclusion.first <= number <= exclusion.last
        and (exclusion.key is None or exclusion.key == key)
        and (not exclusion.visitors or decided.visitor in exclusion.visitors)
    )
