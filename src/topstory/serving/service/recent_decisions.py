"""Recent decisions in memory; older ones are read from the journal."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from topstory.serving.journal.group_commit import Commit
from topstory.serving.journal.journal import Found, Journal
from topstory.serving.journal.records import Decided, Entry
from topstory.serving.service.remote_lookups import Looks

ROUND = 16  # decisions between two looks at the oldest


class Remembered(msgspec.Struct, gc=False):  # there are many: a collection would look at each
    """A decision, and how far it got."""

    number: int
    at: int
    decided: Decided
    committing: Commit | None  # None: it is in the journal
    payoff: float | None = None  # None: none came
    paying: Commit | None = None  # a payoff is on its way to the journal

    @property
    def unpaid(self) -> bool:
        """Whether it is in the journal, and no payoff of it is, or is on its way there."""
        return self.payoff is None and self.committing is None and self.paying is None


def recalled(found: Found) -> Remembered:
    """A decision that is in the journal."""
    return Remembered(found.number, found.at, found.decided, None, found.payoff)


class Memory:
    """At most `limit` decisions, none of them expired for long."""

    def __init__(self, journal: Journal, limit: int, complete_from: int) -> None:
        self._journal, self._limit = journal, limit
        # Ordered, for a plain dict is slow to find its first item once many before it were deleted.
        self._by_number: OrderedDict[int, Remembered] = OrderedDict()
        self._by_request: dict[str, Remembered] = {}
        self._complete_from = complete_from  # every decision since then is here
        self.looks = Looks(journal)

    def __len__(self) -> int:
        return len(self._by_number)

    def add(self, entry: Entry, decided: Decided, committing: Commit) -> Remembered:
        """A new decision, on its way to the journal."""
        remembered = Remembered(entry.number, entry.at, decided, committing)
        self._keep(remembered)
        if not entry.number % ROUND:  # now and then: to look at the oldest is to fetch it
            self._trim(entry.at)
        return remembered

    def find(self, number: int) -> Remembered | None:
        """The decision of a number."""
        remembered = self._by_number.get(number)
        if remembered is None:
            found = self._journal.decision(number)
            if found is not None:
                remembered = self._again(found)
        return remembered

    def found(self, number: int, found: Found | None) -> Remembered | None:
        """The decision of a number that a far journal had: perhaps before it was paid for.

        If it got here meanwhile it stayed, and what is here counts.
        """
        remembered = self._by_number.get(number)
        return remembered if remembered or found is None else self._again(found)

    def certain(self, request: str, since: int) -> bool:
        """Whether memory alone tells if a client's request was decided, not before that time."""
        return request in self._by_request or since >= self._complete_from

    def find_request(self, request: str, since: int, looked: int = 0) -> Remembered | None:
        """The decision that was made for a client's request, if not before `since`.

        At the time `looked` the journal had none.
        """
        remembered = self._by_request.get(request)
        if remembered is not None:
            return remembered if remembered.at >= since else None
        if self.certain(request, max(since, looked)):
            return None
        found = self._journal.request(request, since)
        return None if found is None else self.find(found.number)

    def get(self, number: int) -> Remembered | None:
        """The decision of a number, if it is in memory."""
        return self._by_number.get(number)

    def forget(self, number: int) -> None:
        """Let go of a decision: if it came to be, it is in the journal."""
        remembered = self._by_number.pop(number, None)
        if remembered is not None:
            self._complete_from = max(self._complete_from, remembered.at + 1)
            self._let_go(remembered)

    def _again(self, found: Found) -> Remembered:
        remembered = recalled(found)
        self._keep(remembered)
        self._trim(found.at)
        return remembered

    def _keep(self, remembered: Remembered) -> None:
        self._by_number[remembered.number] = remembered
        if remembered.decided.request is not None:
            self._by_request[remembered.decided.request] = remembered

    def _trim(self, now: int) -> None:
        """Let go of the oldest: those that have expired, and those too many."""
        for _ in range(2 * ROUND):  # faster than they come
            oldest = next(iter(self._by_number.values()))
            busy = (
                oldest.committing is not None
                or oldest.paying is not None
                or oldest.number in self.looks.sought
            )
            wanted = oldest.decided.expires >= now and len(self._by_number) <= self._limit
            if busy or wanted:
                return
            self.forget(oldest.number)

    def _let_go(self, remembered: Remembered) -> None:
        request = remembered.decided.request
        if request is not None and self._by_request.get(request) is remembered:
            del self._by_request[request]
