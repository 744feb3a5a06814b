"""What every journal does: it keeps records in order, durably, and finds them again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from topstory.serving.journal.records import Decided, Entry


class JournalError(OSError):
    """The journal cannot be read or written now: full, locked, or broken."""


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

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all of them in one durable commit, or none: JournalError."""
        ...

    def probe(self) -> None:
        """Commit something that leaves no trace: JournalError if nothing can be written now."""
        ...

    def last(self) -> tuple[int, int]:
        """The number and time of the last record; (0, 0) if there is none."""
        ...

    def read(self, after: int = 0) -> Iterator[tuple[Entry, Decided | None]]:
        """The records after that number; a payoff comes with its decision."""
        ...

    def history(self, before: int) -> Iterator[tuple[Entry, float | None]]:
        """All records below that number but payoffs; a decision comes with its payoff, if any."""
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
        """The same journal on connections of its own, for another thread."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
