"""Bad rows of an imported log: counted by reason, with the first of each kept."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

MAX_SHOWN_CHARACTERS = 80  # of a bad row

BLANK_PROPENSITY = "the propensity is blank: it is taken to be 1 / the pool's size"
CHANGED_FEATURES = "an article's features differ from those it had before: the first were kept"


class Fault(msgspec.Struct, frozen=True):
    """Where a problem was first seen, and how the row begins."""

    file: str
    line: int
    text: str = ""


class BadRow(ValueError):
    """Raised by a strict import for the first row that is not an event."""


class NotAnEvent(ValueError):
    """Raised for a row that is not an event. The reason is worded alike for all such rows.

    `line` and `text` say where, if it is not the first line of the row.
    """

    def __init__(self, reason: str, line: int | None = None, text: bytes = b"") -> None:
        super().__init__(reason)
        self.line, self.text = line, text


class Faults:
    """Counts rows that were skipped as bad, left out on purpose, or kept but noted.

    >>> faults = Faults()
    >>> faults.add("click is not 0 or 1", "day1.gz", 7, "1241160900 109513 2 |user ...")
    >>> faults.note("an article without features: filled with 0", "day1.gz", 9)
    >>> faults.left_out("another position was asked for", "day1.gz", 2, count=40)
    >>> faults.counts, faults.notes
    ({'click is not 0 or 1': 1}, {'an article without features: filled with 0': 1})
    >>> faults.bad, faults.omitted
    (1, 40)
    >>> faults.first["click is not 0 or 1"].line
    7
    >>> Faults(strict=True).add("click is not 0 or 1", "day1.gz", 7, "1241160900 109513 2")
    Traceback (most recent call last):
    ...
    topstory.events.formats.faults.BadRow: day1.gz:7: click is not 0 or 1: '1241160900 109513 2'; \
correct the row, or import without strict to skip such rows
    """

    def __init__(self, strict: bool = False, intact: Mapping[str, int] | None = None) -> None:
        self.strict = strict
        self.intact = intact or {}  # damaged file -> how many of its bytes may be read
        self.counts: dict[str, int] = {}  # reason -> rows skipped
        self.notes: dict[str, int] = {}  # remark -> rows that were kept
        self.omissions: dict[str, int] = {}  # reason -> good rows left out on purpose
        self.first: dict[str, Fault] = {}  # reason or remark -> where it was first seen

    @property
    def bad(self) -> int:
        """How many rows were skipped."""
        return sum(self.counts.values())

    @property
    def omitted(self) -> int:
        """How many rows were left out on purpose."""
        return sum(self.omissions.values())

    def add(
        self, reason: str, file: str, line: int, text: str | bytes = "", count: int = 1
    ) -> None:
        """Count bad rows, the first at `line` (from 1); raises BadRow if the import is strict."""
        if reason not in self.counts:
            fault = Fault(file, line, excerpt(text))
            if self.strict:
                raise _bad_row(reason, fault)
            self.first.setdefault(reason, fault)
        self.counts[reason] = self.counts.get(reason, 0) + count

    def merge(self, others: Faults) -> None:
        """Add the faults of the rows that follow; raises BadRow if the import is strict.

        >>> faults, later = Faults(), Faults()
        >>> later.add("click is not 0 or 1", "day2.gz", 3)
        >>> faults.merge(later)
        >>> faults.bad, faults.first["click is not 0 or 1"].line
        (1, 3)
        """
        if self.strict and others.counts:
            reason = next(iter(others.counts))
            raise _bad_row(reason, others.first[reason])
        for ours, theirs in (
            (self.counts, others.counts),
            (self.notes, others.notes),
            (self.omissions, others.omissions),
        ):
            for reason, count in theirs.items():
                ours[reason] = ours.get(reason, 0) + count
        for reason, fault in others.first.items():
            self.first.setdefault(reason, fault)

    def note(
        self, remark: str, file: str, line: int, text: str | bytes = "", count: int = 1
    ) -> None:
        """Count rows that are kept with a remark: never an error, even in a strict import."""
        if remark not in self.notes:
            self.first.setdefault(remark, Fault(file, line, excerpt(text)))
        self.notes[remark] = self.notes.get(remark, 0) + count

    def forget(self, remark: str) -> None:
        """Drop a remark that turned out to be none."""
        if self.notes.pop(remark, None) is not None:
            del self.first[remark]

    def left_out(
        self, reason: str, file: str, line: int, text: str | bytes = "", count: int = 1
    ) -> None:
        """Count good rows that were not asked for: never an error."""
        if reason not in self.omissions:
            self.first.setdefault(reason, Fault(file, line, excerpt(text)))
        self.omissions[reason] = self.omissions.get(reason, 0) + count


def _bad_row(reason: str, fault: Fault) -> BadRow:
    quoted = f": {fault.text!r}" if fault.text else ""
    return BadRow(
        f"{fault.file}:{fault.line}: {reason}{quoted}; "
        "correct the row, or import without strict to skip such rows"
    )


def excerpt(text: str | bytes) -> str:
    r"""The beginning of a row, with unprintable characters escaped.

    >>> excerpt(b"1241160900 \xff")
    '1241160900 \\xff'
    """
    begin = text[: MAX_SHOWN_CHARACTERS + 1]
    words = begin.decode("utf-8", "backslashreplace") if isinstance(begin, bytes) else begin
    words = "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)
    return words if len(words) <= MAX_SHOWN_CHARACTERS else words[: MAX_SHOWN_CHARACTERS - 1] + "…"
