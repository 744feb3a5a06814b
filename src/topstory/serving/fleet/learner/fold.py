"""The learner's end of the transport: takes what is new in the inbox, cut by cut.

A cut names the last record of each node that is in. It is the last record of its own batch in the
journal, so it is there if and only if what it says is there: the state is a pure function of what
front ends wrote and of the cuts, whoever computes it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Set
from time import monotonic
from typing import NamedTuple, TypeGuard

from topstory.serving.api.errors import ApiError
from topstory.serving.config.schema import Config
from topstory.serving.fleet.inbox import Arrivals, Inbox
from topstory.serving.fleet.origins import is_origin, place_of
from topstory.serving.journal.clock import SECOND
from topstory.serving.journal.group_commit import Commit
from topstory.serving.journal.journal import Found, JournalError
from topstory.serving.journal.records import Cut, Decided, Paid
from topstory.serving.service.sequencer.influence import Influence
from topstory.serving.service.sequencer.ledger import Ledger
from topstory.serving.service.sequencer.recent_decisions import PendingDecision

log = logging.getLogger("topstory.serving")


class Look(NamedTuple):
    """What is new in the inbox, with the decisions that its payoffs are of."""

    taken: Arrivals
    known: Mapping[int, PendingDecision]  # by origin, as far as they were in memory
    found: Mapping[int, Found]  # by origin, those that had to be looked up


FOLD_SECONDS = 0.01  # between two looks at an inbox that was empty
MAX_FOLD = 8_000  # records in one cut
RETRY_SECONDS = 0.2
PURGE_SECONDS = 5.0
MAX_PURGED = 20_000  # rows at once, more than a cut has: deleting them delays a look
PURGE_GRACE = 600 * SECOND  # after the window of a decision


class Fold:
    """Moves records from the inbox to the journal, and so into the state."""

    def __init__(self, config: Config, ledger: Ledger, influence: Influence, inbox: Inbox) -> None:
        self._ledger, self._influence, self._inbox = ledger, influence, inbox
        self._kept = int(config.window_seconds * SECOND) + PURGE_GRACE
        self._limit = min(MAX_FOLD, config.limits.waiting - 1)
        self._nodes = 1  # with something new, the last time
        # The numbers of recent decisions, by origin; of others the database is asked.
        self._numbers: OrderedDict[int, int] = OrderedDict()
        self._remembered = config.limits.remembered
        self.unknown = 0  # payoffs that were left out: of no decision, or of one that has another
        self.moved = 0  # records
        self._purged = -PURGE_SECONDS
        self._ahead: asyncio.Task[Look] | None = None  # at what follows a cut on its way

    async def run(self) -> None:
        """Fold until this learner is replaced."""
        commits = self._ledger.commits
        try:
            while commits.halted is None:
                try:
                    busy = await self.round()
                except JournalError as error:
                    log.error("the inbox cannot be read: %s", error)
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                except ApiError as error:  # the journal cannot be written now
                    log.error("the inbox cannot be taken: %s", error)
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                if not busy:
                    await asyncio.sleep(FOLD_SECONDS)
        finally:
            if self._ahead is not None:
                self._ahead.cancel()

    async def round(self) -> bool:
        """Take what is new, if anything is; returns once it is in the journal and the state."""
        commits, cuts = self._ledger.commits, self._ledger.state.cuts
        if commits.unconfirmed:  # what it says about cuts is not known yet
            commits.resolve()
            await asyncio.sleep(RETRY_SECONDS)
            return True
        ahead, self._ahead = self._ahead, None
        look = await (ahead or self._looking(cuts))
        if not look.taken.rows:
            if ahead is None:
                await self._purge()
            return ahead is not None  # that look was early: there may be something by now
        if commits.unconfirmed or commits.room <= self._limit:
            return True
        commit = self._take(look)
        if 2 * self._nodes * len(look.taken.rows) >= self._limit:
            # There is more: read it while the database writes. If that fails, this is dropped.
            self._ahead = self._looking({**cuts, **look.taken.cut})
        failure = await commit
        if failure is not None:
            await self._forget_ahead()
            log.error("a cut was not written, it is tried again: %s", failure)
            await asyncio.sleep(RETRY_SECONDS)
        await self._purge()
        return True

    def _looking(self, cuts: Mapping[int, int]) -> asyncio.Task[Look]:
        return asyncio.create_task(asyncio.to_thread(self._look, dict(cuts)))

    async def _forget_ahead(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            await asyncio.wait([ahead])
            ahead.exception()  # whatever it was, if any

    def _look(self, cuts: Mapping[int, int]) -> Look:
        """In a thread: what is new, and the decisions of its payoffs."""
        taken = self._inbox.new(cuts, max(1, self._limit // self._nodes), self._limit)
        self._nodes = max(1, len(taken.cut))
        new = {origin for origin, _ in taken.rows}
        known: dict[int, PendingDecision] = {}
        wanted = []
        for _, record in taken.rows:
            if isinstance(record, Paid) and record.decision not in new:
                if not is_origin(record.decision):
                    continue
                # Kept: the new decisions may make memory forget it before its payoff is taken.
                pending = self._remembers(record.decision)
                if pending is None:
                    wanted.append(record.decision)
                else:
                    known[record.decision] = pending
        found = self._inbox.taken(wanted) if wanted else {}
        if len(found) < len(wanted):
            taken = without_early(taken, cuts, {*known, *found})
        return Look(taken, known, found)

    def _remembers(self, origin: int) -> PendingDecision | None:
        number = self._numbers.get(origin)
        return None if number is None else self._ledger.recent.get(number)

    def _take(self, look: Look) -> Commit:
        """Queue it for one commit: decisions first, then payoffs, each in the order of nodes."""
        taken, influence = look.taken, self._influence
        ledger, at = self._ledger, self._ledger.clock.now()
        decisions = [(origin, it) for origin, it in taken.rows if isinstance(it, Decided)]
        payoffs = [(origin, it) for origin, it in taken.rows if isinstance(it, Paid)]
        if decisions:
            bounded = influence.bounded([each for _, each in decisions], at)
            entries, _ = ledger.decide(bounded, at, awaited=True)
            for (origin, _), entry in zip(decisions, entries, strict=True):
                self._numbers[origin] = entry.number
            while len(self._numbers) > self._remembered:
                self._numbers.popitem(last=False)
        paying: dict[int, PendingDecision] = {}
        records: list[Paid] = []
        for origin, paid in payoffs:
            pending = self._decision(paid, look)
            if _is_open(pending) and pending.number not in paying:
                teaches = influence.counts_payoff(pending.decided.pool, paid.key, at)
                paying[pending.number] = pending
                records.append(Paid(pending.number, paid.payoff, paid.key, teaches, origin))
            else:
                self.unknown += 1
                node, seq = place_of(origin)
                log.error("payoff %d of node %d is of no open decision: left out", seq, node)
        if records:
            ledger.pay(list(paying.values()), records, at)
        self.moved += len(taken.rows)
        return ledger.cut(Cut(taken.cut), at)

    def _decision(self, paid: Paid, look: Look) -> PendingDecision | None:
        recent = self._ledger.recent
        if not is_origin(paid.decision):
            return recent.find(paid.decision)
        remembered = look.known.get(paid.decision) or self._remembers(paid.decision)
        looked_up = look.found.get(paid.decision)
        if remembered is not None or looked_up is None:
            return remembered
        return recent.from_lookup(looked_up.number, looked_up)

    async def _purge(self) -> None:
        """Now and then, delete what nobody can ask for any more."""
        now = monotonic()
        if now - self._purged < PURGE_SECONDS:
            return
        if self._ahead is not None:  # both use one connection
            await asyncio.wait([self._ahead])
        before = self._ledger.clock.now() - self._kept
        cuts = dict(self._ledger.state.cuts)
        gone = await asyncio.to_thread(self._inbox.purge, cuts, before, MAX_PURGED)
        # If more are waiting, the next look deletes again: no cut brings in as much as that.
        self._purged = now if gone < MAX_PURGED else -PURGE_SECONDS


def _is_open(pending: PendingDecision | None) -> TypeGuard[PendingDecision]:
    """Whether a decision has no payoff, and none is on its way."""
    return pending is not None and pending.payoff is None and pending.paying is None


def without_early(taken: Arrivals, cuts: Mapping[int, int], there: Set[int]) -> Arrivals:
    """What was read, up to the payoffs whose decision was not: so much was new.

    Such a payoff comes with the next cut, as its decision does, and so does all that its front end
    wrote after it. `cuts` is up to where all was taken before; `there`, the decisions of that.
    """
    cut = dict(taken.cut)
    payoffs = [
        (*place_of(origin), record.decision)
        for origin, record in taken.rows
        if isinstance(record, Paid) and is_origin(record.decision) and record.decision not in there
    ]
    lowered = True
    while lowered:  # it may be the decision of another payoff that is not taken now
        lowered = False
        for node, seq, decision in payoffs:
            of, at = place_of(decision)
            if seq <= cut[node] and at > max(cut.get(of, 0), cuts.get(of, 0)):
                cut[node], lowered = seq - 1, True
    rows = [each for each in taken.rows if place_of(each[0])[1] <= cut[place_of(each[0])[0]]]
    return Arrivals({node: seq for node, seq in cut.items() if seq > cuts.get(node, 0)}, rows)
