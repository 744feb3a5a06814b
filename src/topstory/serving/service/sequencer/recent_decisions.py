"""Recent decisions in memory; older ones are read from the journal."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from topstory.serving.journal.group_commit import Commit
from topstory.serving.journal.journal import Found, Journal
from topstory.serving.journal.records import Decided
from topstory.serving.service.sequencer.remote_lookups import RemoteLookups

TRIM_INTERVAL = 16  # decisions between two attempts to drop the oldest
PLAIN_BYTES = 700  # of a decision for one article, without its context


class PendingDecision(msgspec.Struct, gc=False):  # there are many: a collection would visit each
    """A decision whose feedback may still come, and its progress."""

    number: int
    at: int
    decided: Decided
    committing: Commit | None  # None: it is in the journal
    payoff: float | None = None  # None: none came
    paying: Commit | None = None  # a payoff is on its way to the journal


def size_of(decided: Decided) -> int:
    """The bytes that a decision takes in memory, about."""
    named = (*decided.exclude, *decided.ranking, *decided.withheld)
    return PLAIN_BYTES + len(decided.user) + sum(60 + len(article) for article in named)


def from_journal(found: Found) -> PendingDecision:
    """A decision that is in the journal."""
    return PendingDecision(found.number, found.at, found.decided, None, found.payoff)


class RecentDecisions:
    """At most `limit` decisions, none of them expired for long."""

    def __init__(
        self, journal: Journal, limit: int, complete_from: int, max_bytes: int = 2**62
    ) -> None:
        self._journal, self._limit, self._max_bytes = journal, limit, max_bytes
        self.bytes = 0  # about
        # Ordered, for a plain dict is slow to find its first item once many before it were deleted.
        self._by_number: OrderedDict[int, PendingDecision] = OrderedDict()
        self._by_request: dict[str, PendingDecision] = {}
        self._complete_from = complete_from  # every decision since then is here
        self.lookups = RemoteLookups(journal)
        self.get = self._by_number.get  # by number, None if it is not in memory

    def __len__(self) -> int:
        return len(self._by_number)

    def add(self, pending: PendingDecision) -> None:
        """Keep a new decision, on its way to the journal."""
        number, decided = pending.number, pending.decided
        self._by_number[number] = pending
        if decided.exclude or decided.ranking or decided.withheld:
            self.bytes += size_of(decided)
        else:  # the same, without a call
            self.bytes += PLAIN_BYTES + len(decided.user)
        if decided.request is not None:
            self._by_request[decided.request] = pending
        if not number % TRIM_INTERVAL:  # not each time: fetching the oldest takes time
            self._trim(pending.at)

    def newest(self, count: int, pool: str) -> list[PendingDecision]:
        """The last decisions of a pool, the newest first, among some hundred of all pools."""
        found = []
        for pending, _ in zip(reversed(self._by_number.values()), range(50 * count), strict=False):
            if pending.decided.pool == pool and pending.committing is None:
                found.append(pending)
                if len(found) == count:
                    break
        return found

    def find(self, number: int) -> PendingDecision | None:
        """The decision of a number, from memory or the journal."""
        pending = self._by_number.get(number)
        if pending is None:
            found = self._journal.decision(number)
            if found is not None:
                pending = self._keep(found)
        return pending

    def from_lookup(self, number: int, found: Found | None) -> PendingDecision | None:
        """The decision of a number that was looked up, perhaps before its payoff came.

        If it has come into memory meanwhile it has stayed there, and that one counts.
        """
        pending = self._by_number.get(number)
        return pending if pending or found is None else self._keep(found)

    def is_complete(self, request: str, since: int) -> bool:
        """Whether memory alone shows whether a client's request was decided since that time."""
        return request in self._by_request or since >= self._complete_from

    def find_request(self, request: str, since: int, checked: int = 0) -> PendingDecision | None:
        """The decision that was made for a client's request, not before `since`.

        At the time `checked` the journal had none.
        """
        pending = self._by_request.get(request)
        if pending is not None:
            return pending if pending.at >= since else None
        if self.is_complete(request, max(since, checked)):
            return None
        found = self._journal.request(request, since)
        return None if found is None else self.find(found.number)

    def forget(self, number: int) -> None:
        """Drop a decision: if it was committed, it is in the journal."""
        pending = self._by_number.pop(number, None)
        if pending is not None:
            self.bytes -= size_of(pending.decided)
            self._complete_from = max(self._complete_from, pending.at + 1)
            request = pending.decided.request
            if request is not None and self._by_request.get(request) is pending:
                del self._by_request[request]

    def _keep(self, found: Found) -> PendingDecision:
        pending = from_journal(found)
        self._by_number[pending.number] = pending
        self.bytes += size_of(pending.decided)
        if pending.decided.request is not None:
            self._by_request[pending.decided.request] = pending
        self._trim(found.at)
        return pending

    def _trim(self, now: int) -> None:
        """Drop the oldest: those that have expired, and those beyond the limit."""
        for _ in range(2 * TRIM_INTERVAL):  # faster than they come
            oldest = next(iter(self._by_number.values()))
            busy = (
                oldest.committing is not None
                or oldest.paying is not None
                or oldest.number in self.lookups.in_progress
            )
            fits = len(self._by_number) <= self._limit and self.bytes <= self._max_bytes
            wanted = oldest.decided.expires >= now and fits
            if busy or wanted:
                return
            self.forget(oldest.number)
