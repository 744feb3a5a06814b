"""What every journal does: it keeps records in order, durably, and finds them again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from topstory.serving.journal.records import Decided, Entry, Excluded, Paid

if TYPE_CHECKING:
    from topstory.serving.journal.chain import Head


class JournalError(OSError):
    """The journal cannot be read or written now: full, locked, or broken."""


class DamagedJournal(JournalError):
    """A record is not what was written, or records are missing."""


class JournalLost(JournalError):
    """This service must not write any more: the journal has another owner, or another content."""


class JournalOwned(JournalError):
    """Another service owns the journal."""


class Payoff(NamedTuple):
    """The payoff of a decision, in its place."""

    number: int
    at: int
    record: Paid


TAKEN_OVER = "another service has taken over this journal: restart this one"


class Found(NamedTuple):
    """A decision in the journal, and its payoff if one came."""

    number: int
    at: int
    decided: Decided
    payoff: float | None


class Journal(Protocol):
    """Records in one order.

    The methods that write are called from one thread, the others from another.
    """

    @property
    def remote(self) -> bool:
        """Whether a lookup takes so long that an event loop should not wait for it."""
        ...

    @property
    def head(self) -> Head:
        """The end of the last batch that this owner knows to be in the journal."""
        ...

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all of them in one durable commit, or none: JournalError.

        The commit itself checks that this is still the owner: else JournalLost.
        """
        ...

    def committed(self, entries: Sequence[Entry]) -> bool:
        """Whether the last `append`, which failed, is in the journal all the same.

        By the mark of the batch: a record of the same number may be another owner's.
        """
        ...

    def beat(self) -> None:
        """Show that the owner is alive, and check that the journal is still its own."""
        ...

    def probe(self) -> None:
        """Commit something that leaves no trace: JournalError if nothing can be written now."""
        ...

    def last(self) -> tuple[int, int]:
        """The number and time of the last record; (0, 0) if there is none."""
        ...

    def mark(self, number: int) -> bytes | None:
        """The mark of the batch that ends with that record; None if none does."""
        ...

    def checkpoint(self) -> Head | None:
        """Up to where records may be missing, and the mark there; None before version 2."""
        ...

    def read(self, after: int = 0) -> Iterator[tuple[Entry, Decided | None]]:
        """The records after that number; a payoff comes with its decision.

        What is read is checked: DamagedJournal.
        """
        ...

    def history(self, before: int, after: int = 0) -> Iterator[tuple[Entry, Payoff | None]]:
        """All records below that number but payoffs; a decision comes with its payoff, if any.

        Of decisions, only those after the number `after`.
        """
        ...

    def exclusions(self) -> list[Excluded]:
        """What operators excluded, in order."""
        ...

    def check(self) -> int:
        """Check every record, and the database itself: DamagedJournal. Returns how many."""
        ...

    def decision(self, number: int) -> Found | None:
        """The decision of that number."""
        ...

    def request(self, request: str, since: int) -> Found | None:
        """The decision that was made for a client's request, not before that time."""
        ...

    def first_paid_after(self, number: int) -> int | None:
        """The first decision whose payoff is a record after that number, if there is one."""
        ...

    def prune(self, before: int) -> int:
        """Delete decisions below that number, and their payoffs; how many records went."""
        ...

    def pruned(self) -> int:
        """The number below which decisions were deleted; 0 if none were."""
        ...

    def reopen(self) -> Journal:
        """The same journal on connections of its own, for another thread; it only reads."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
