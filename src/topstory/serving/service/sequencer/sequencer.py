"""The sequencer: numbers what front ends propose, commits it, and reports what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from topstory.serving.api.errors import ApiError
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import SECOND
from topstory.serving.journal.group_commit import Commit, overloaded
from topstory.serving.journal.journal import Found, JournalError
from topstory.serving.journal.records import Decided, Edit
from topstory.serving.service.replies import unexpected
from topstory.serving.service.sequencer.edit_turns import EditTurns
from topstory.serving.service.sequencer.influence import Influence
from topstory.serving.service.sequencer.ledger import Ledger, not_written
from topstory.serving.service.sequencer.recent_decisions import PendingDecision, from_journal
from topstory.serving.service.sequencer.remote_lookups import unreadable
from topstory.serving.service.sequencer.settlement import Settlement
from topstory.serving.service.transport import (
    Payments,
    Proposal,
    another_request,
    is_same_request,
)


class Sequencer:
    """Decides the order of everything that changes the state; there is one.

    Every request counts once: a repeated one gets the answer of the first.
    """

    def __init__(self, config: Config, ledger: Ledger) -> None:
        self._ledger, self._recent = ledger, ledger.recent
        self._durable = config.journal.decisions == "durable"
        self._window = int(config.window_seconds * SECOND)
        self.influence = Influence(config, ledger.state)
        self._settlement = Settlement(ledger, self.influence)
        self.turns = EditTurns()
        event = ledger.state.config.get("event_numbers")
        numbers = config.context - event - 1 if isinstance(event, int) else config.context
        self._own_bytes = 8 * numbers

    # -- decisions --

    def propose(
        self, proposal: Proposal, places: Sequence[int] | None = None, checked: int = 0
    ) -> None:
        """Have decisions made: they have consecutive numbers, and share a commit.

        For all places, or some; the journal had no decision for them at the time `checked`.
        """
        ledger, pool = self._ledger, proposal.pool
        if places is None:
            places = range(len(proposal.requests))
        at, editing = ledger.clock.now(), ledger.edits.get(pool)
        if editing is not None:  # what is decided after an edit must see it
            self.turns.delay(pool, proposal.source)
            editing.then(lambda _: proposal.outdated(places))
            return
        if not proposal.is_current(at):
            self.turns.delay(pool, proposal.source)
            proposal.outdated(places)
            return
        if self.turns.delayed:
            self.turns.served(pool, proposal.source)
        new, duplicates = places, places[:0]
        if any(proposal.requests):
            new, duplicates = self._answer_repeats(proposal, places, at, checked)
        if new:
            try:
                self._decide(proposal, new, at)
            except ApiError as error:
                proposal.denied(new, error)
            except Exception:
                proposal.denied(new, unexpected())
        if duplicates:  # the first of each is made by now
            self.propose(proposal, duplicates, checked)

    def _decide(self, proposal: Proposal, places: Sequence[int], at: int) -> None:
        ledger = self._ledger
        if ledger.commits.unconfirmed:
            ledger.check_confirmed(pool=proposal.pool)
        decided = proposal.decide(places, ledger.number + 1, at)
        fits = ledger.within_limits(decided)
        if fits < len(decided):
            # Once the shows before them are counted, these find the article gone.
            rest, places, decided = places[fits:], places[:fits], decided[:fits]
            counted = self._make(proposal, places, decided, at) if places else ledger.limiting
            if counted is None:
                proposal.outdated(rest)
            else:
                counted.then(lambda _: proposal.outdated(rest))
            return
        self._make(proposal, places, decided, at)

    def _make(
        self, proposal: Proposal, places: Sequence[int], decided: Sequence[Decided], at: int
    ) -> Commit:
        ledger = self._ledger
        decided = self.influence.bounded(decided, at)
        entries, commit = ledger.decide(decided, at, self._durable)
        made, first = places[: len(entries)], entries[0].number
        if self._durable:
            commit.then(partial(_report_made, proposal, made, first, decided))
        else:
            proposal.made(made, first, decided)
        if len(entries) < len(places):
            proposal.denied(places[len(entries) :], overloaded())
        return commit

    def _answer_repeats(
        self, proposal: Proposal, places: Sequence[int], at: int, checked: int
    ) -> tuple[list[int], list[int]]:
        """Answer requests that were decided before.

        Returns the places of new ones, and those of copies of new ones.
        """
        new, duplicates = [], []
        seen: set[str] = set()
        for place in places:
            request = proposal.requests[place]
            if request is None:
                new.append(place)
            elif request in seen:
                duplicates.append(place)
            else:
                seen.add(request)
                one = _OneRequest(proposal, place, request)
                try:
                    if not self._answer_repeat(one, at, checked):
                        new.append(place)
                except ApiError as error:
                    one.refuse(error)
                except Exception:
                    one.refuse(unexpected())
        return new, duplicates

    def _answer_repeat(self, one: _OneRequest, at: int, checked: int) -> bool:
        """Whether it is taken care of: decided before, or being looked up."""
        self._ledger.check_confirmed(request=one.request)
        recent, since = self._recent, at - self._window
        if recent.lookups.remote and not recent.is_complete(one.request, max(since, checked)):
            recent.lookups.request(one.request, since, partial(self._looked_up, one, at), one)
            return True
        try:
            pending = recent.find_request(one.request, since, checked)
        except JournalError as error:
            raise unreadable(error) from None
        if pending is not None:
            self._repeat(one, pending)
        return pending is not None

    def _looked_up(self, one: _OneRequest, at: int, found: Found | None) -> None:
        if found is None:  # what has come since then is in memory
            self.propose(one.proposal, (one.place,), checked=at)
        else:
            self._repeat(one, from_journal(found))

    def _repeat(self, one: _OneRequest, pending: PendingDecision) -> None:
        wanted = one.proposal.wanted(one.place)
        if not is_same_request(wanted, pending.decided, self._own_bytes):
            raise another_request(one.request)
        if self._durable and pending.committing is not None:
            pending.committing.then(partial(_report_earlier, one, pending))
        else:
            _report_earlier(one, pending, None)

    # -- payoffs --

    def pay(self, payments: Payments) -> None:
        """Record payoffs, each once."""
        self._settlement.pay(payments)

    # -- edits --

    async def edit_turn(self, pool: str) -> None:
        """Wait for the edit that is on its way, and for front ends that it delayed.

        Raises Unavailable if that edit may or may not have been committed.
        """
        edits = self._ledger.edits
        while pool in edits or pool in self.turns.delayed:
            if pool in edits:
                await edits[pool]
            await self.turns.wait(pool)
        self._ledger.check_confirmed(pool=pool)

    async def edit(self, record: Edit) -> None:
        """Record an edit; it holds when this returns. First wait for its `edit_turn`."""
        failure = await self._ledger.edit(record, self._ledger.clock.now())
        if failure is not None:
            raise not_written(failure)


class _OneRequest(NamedTuple):
    """A place of a proposal, whose request has an id."""

    proposal: Proposal
    place: int
    request: str

    def refuse(self, refused: ApiError) -> None:
        """Answer with this error."""
        self.proposal.denied((self.place,), refused)


def _report_made(
    proposal: Proposal,
    places: Sequence[int],
    first: int,
    decided: Sequence[Decided],
    failure: str | None,
) -> None:
    if failure is None:
        proposal.made(places, first, decided)
    else:
        proposal.denied(places, not_written(failure))


def _report_earlier(one: _OneRequest, pending: PendingDecision, failure: str | None) -> None:
    if failure is None:
        one.proposal.earlier(one.place, pending.number, pending.decided)
    else:
        one.refuse(not_written(failure))
