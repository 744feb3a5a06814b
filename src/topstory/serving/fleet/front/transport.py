"""A front end's end of the transport: what it decides and is paid goes to the database in groups.

As with workers, a proposal is scored before it is sent, by numbers that are drawn here and
recorded. All that waits goes into one batch, and while that is on its way the next one gathers: one
at a time, for a node's batches have an order.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from pathlib import Path
from time import monotonic
from typing import TypeVar

from topstory.serving.api.errors import ApiError, Unavailable
from topstory.serving.config.schema import Config
from topstory.serving.fleet.front.batch_sender import BatchSender
from topstory.serving.fleet.front.late_decisions import LateDecisions
from topstory.serving.fleet.front.published import PublishedView
from topstory.serving.fleet.front.spool import Spool
from topstory.serving.fleet.front.waiting_rows import WaitingDecision, WaitingPayoff, report_payoffs
from topstory.serving.fleet.inbox import BatchOutcome, Inbox, NewDecision, NewPayoff
from topstory.serving.fleet.origins import is_origin
from topstory.serving.journal.clock import SECOND
from topstory.serving.journal.group_commit import overloaded
from topstory.serving.journal.journal import JournalError
from topstory.serving.journal.postgres.fleet_tables import (
    EARLIER,
    MADE,
    NOTHING,
)
from topstory.serving.journal.records import Decided
from topstory.serving.service.sequencer.ledger import not_written
from topstory.serving.service.transport import (
    LocalProposal,
    Payments,
    another_payoff,
    another_request,
    is_same_request,
    never_final,
)

log = logging.getLogger("topstory.serving")
T = TypeVar("T")

MAX_BATCH = 1_024  # rows
MAX_DRAW = 2**62
PROBE_SECONDS = 0.5  # between two attempts to reach the database
STUCK_SECONDS = 1.0  # a batch that takes longer counts as failing until it is done
OUTDATED_SECONDS = 3.0  # a decision waits no longer for the model after an edit


class DatabaseTransport:
    """Hands in decisions and payoffs, and reports once they are committed."""

    def __init__(
        self, config: Config, view: PublishedView, inbox: Inbox, node: int, event_numbers: int = 0
    ) -> None:
        """`event_numbers`: how many numbers of a context are not the user's own."""
        self._view, self._inbox = view, inbox
        own = config.context - event_numbers - 1 if event_numbers else config.context
        self._own_bytes = 8 * own
        self._window, self._limit = int(config.window_seconds * SECOND), config.limits.waiting
        self._draw = secrets.randbits(62)  # no other node's
        self._decisions: list[WaitingDecision] = []
        self._payoffs: list[WaitingPayoff] = []
        self._task: asyncio.Task[None] | None = None
        self._sender = BatchSender(inbox, node)
        self._failure: str | None = None
        self._began: float | None = None  # when the batch on its way began, if there is one
        self._held: list[WaitingDecision] = []  # outdated, until a newer model is there
        self._probing: asyncio.Task[None] | None = None
        serves = config.journal.degraded == "serve"
        self._late = LateDecisions(Spool(Path(config.data))) if serves else None
        self.seconds = 0.0  # of the last batch
        self.count = 0  # of batches

    @property
    def waiting(self) -> int:
        """Rows that are not on their way yet, or wait for a newer model."""
        return len(self._decisions) + len(self._payoffs) + len(self._held)

    @property
    def serves_late(self) -> bool:
        """Whether decisions are made though they cannot be handed in."""
        return self._late is not None and self._late.usable

    @property
    def failing(self) -> str | None:
        """Why nothing can be handed in now; None if it can."""
        began = self._began
        if self._failure is None and began is not None and monotonic() - began > STUCK_SECONDS:
            return "the database has not answered for more than a second"
        return self._failure

    # -- called by the front end --

    def propose(self, proposal: LocalProposal) -> None:
        """Score, and hand the decisions in."""
        places, pool = range(len(proposal.requests)), proposal.pool
        if self._failure is not None and not self.serves_late:
            proposal.denied(places, not_written(self._failure))
            return
        if self.waiting + len(places) > self._limit:
            proposal.denied(places, overloaded())
            return
        state = self._view.latest()
        edition = state.editions[pool]
        try:
            made = proposal.decide(places, self._draw, self._view.now(), state, drawn=True)
        except ApiError as error:  # what was decided before still gets its answer
            for place, request in enumerate(proposal.requests):
                if request is None:
                    proposal.denied((place,), error)
                else:
                    row = NewDecision(pool, edition, request, None)
                    self._decisions.append(WaitingDecision(proposal, place, row, error))
        else:
            self._draw = (self._draw + len(made)) % MAX_DRAW
            for place, (request, each) in enumerate(zip(proposal.requests, made, strict=True)):
                row = NewDecision(pool, edition, request, each)
                self._decisions.append(WaitingDecision(proposal, place, row, None))
        if self._failure is None:
            self._wake()
        elif self._late is not None:
            late, self._decisions = self._decisions, []
            self._late.add(late)

    def pay(self, payments: Payments) -> None:
        """Hand payoffs in."""
        places = range(len(payments.receipts))
        if self._failure is not None:
            payments.denied(places, not_written(self._failure))
            return
        if self.waiting + len(places) > self._limit:
            payments.denied(places, overloaded())
            return
        given = zip(payments.receipts, payments.payoffs, payments.keys, strict=True)
        for place, ((number, expires), payoff, key) in enumerate(given):
            row = NewPayoff(number, expires, payoff, key)
            self._payoffs.append(WaitingPayoff(payments, place, row))
        self._wake()

    def _wake(self) -> None:
        if self._task is None and (self._decisions or self._payoffs):
            self._task = asyncio.create_task(self._run())

    def view_changed(self) -> None:
        """A newer model is there: decide again what an edit had made outdated."""
        held, self._held = self._held, []
        for each in held:
            edition = self._view.latest().editions.get(each.row.pool, 0)
            if edition > each.row.edition:
                each.proposal.outdated((each.place,))
            else:
                self._held.append(each)

    # -- batches --

    async def _run(self) -> None:
        try:
            while self._decisions or self._payoffs:
                await asyncio.sleep(0)  # what is ready by now goes along
                made, self._decisions = self._decisions[:MAX_BATCH], self._decisions[MAX_BATCH:]
                room = MAX_BATCH - len(made)
                paid, self._payoffs = self._payoffs[:room], self._payoffs[room:]
                await self._send(made, paid)
        finally:
            self._task = None

    async def _send(self, made: list[WaitingDecision], paid: list[WaitingPayoff]) -> None:
        self._began = began = monotonic()
        try:
            paid = await self._without_old(paid)
            if not made and not paid:
                return
            now = self._view.now()
            outcome, earlier = await self._sender.send(
                *(now, now - self._window),
                *([each.row for each in made], [each.row for each in paid]),
            )
        except Exception as error:
            if not isinstance(error, JournalError):
                log.exception("a batch failed unexpectedly")
            self._fail(str(error), made, paid)
            return
        finally:
            self._began = None
        self.count, self.seconds = self.count + 1, monotonic() - began
        self._report_decisions(made, outcome, earlier)
        report_payoffs(paid, outcome.codes[len(made) :])

    async def _without_old(self, paid: list[WaitingPayoff]) -> list[WaitingPayoff]:
        """Answer payoffs that the journal has from before the fleet; returns the others."""
        old = [each.row.decision for each in paid if not is_origin(each.row.decision)]
        if not old:
            return paid
        found = await self._sender.run(lambda inbox: inbox.in_journal(old))
        left = []
        for each in paid:
            decided, payoff = found.get(each.row.decision, (None, None))
            if is_origin(each.row.decision):
                left.append(each)
            elif decided is None or decided.expires != each.row.expires:
                each.payments.denied((each.place,), never_final())
            elif payoff is None:
                left.append(each)
            elif payoff == each.row.payoff:
                each.payments.settled((each.place,), repeated=True)
            else:
                each.payments.denied((each.place,), another_payoff(payoff, each.row.payoff))
        return left

    def _report_decisions(
        self, made: list[WaitingDecision], outcome: BatchOutcome, earlier: dict[int, Decided]
    ) -> None:
        begin = 0
        for end in range(1, len(made) + 1):  # neighbours of one proposal are reported together
            one, code = made[begin], outcome.codes[begin]
            same = end < len(made) and outcome.codes[end] == MADE == code
            if same and made[end].proposal is one.proposal:
                continue
            if code == MADE:
                group = made[begin:end]
                decided = [each.row.decided for each in group if each.row.decided is not None]
                one.proposal.made([each.place for each in group], outcome.first + begin, decided)
            else:
                self._report_other(one, code, outcome.refs[begin], earlier)
            begin = end

    def _report_other(
        self, one: WaitingDecision, code: int, ref: int, earlier: dict[int, Decided]
    ) -> None:
        was = earlier.get(ref)
        if code == EARLIER and was is not None:
            if is_same_request(one.proposal.wanted(one.place), was, self._own_bytes):
                one.proposal.earlier(one.place, ref, was)
            else:
                one.proposal.denied((one.place,), another_request(str(one.row.request)))
        elif code == NOTHING and one.error is not None:
            one.proposal.denied((one.place,), one.error)
        else:
            self._hold(one)

    def _hold(self, one: WaitingDecision) -> None:
        """Its pool was edited: the model with the edit is published any moment."""
        self._held.append(one)
        self.view_changed()
        if one in self._held:
            asyncio.get_running_loop().call_later(OUTDATED_SECONDS, self._give_up, one)

    def _give_up(self, one: WaitingDecision) -> None:
        if one in self._held:
            self._held.remove(one)
            message = "the pool was edited, and no learner has published it since; try again"
            one.proposal.denied((one.place,), Unavailable(message))

    # -- failures --

    def _fail(self, failure: str, made: list[WaitingDecision], paid: list[WaitingPayoff]) -> None:
        """Refuse all that waits, and what comes, until the database can be reached again."""
        log.error("nothing can be handed in: %s", failure)
        self._failure = failure
        paid, self._payoffs = paid + self._payoffs, []
        later, self._decisions = self._decisions, []
        if self._late is not None and self.serves_late:
            self._late.add(later)
        else:
            made = made + later
        for one in made:  # those that were sent may have arrived: then they count
            one.proposal.denied((one.place,), not_written(failure))
        for each in paid:
            each.payments.denied((each.place,), not_written(failure))
        self._probing = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        while self._failure is not None:
            await asyncio.sleep(PROBE_SECONDS)
            try:
                await self._sender.resolve()
                if self._late is not None:
                    await self._late.hand_in(self._inbox)
            except OSError as error:  # JournalError, or the disk
                self._failure = str(error)
            else:
                self._failure = None
        self._wake()

    async def prepare(self) -> None:
        """Before the first request: hand in what an earlier process left behind."""
        if self._late is not None:
            try:
                await self._late.hand_in(self._inbox)
            except OSError as error:
                self._fail(str(error), [], [])

    async def watch(self) -> None:
        """While nothing is handed in, check once a second that the database is there."""
        while True:
            await asyncio.sleep(1.0)
            if self._task is None and self._failure is None:
                try:
                    await self._sender.run(lambda inbox: inbox.run("SELECT 1"))
                except JournalError as error:
                    self._fail(str(error), [], [])

    async def drain(self) -> None:
        """Wait until nothing waits."""
        while self._task is not None:
            await asyncio.sleep(0.005)
        if self._late is not None:
            await self._late.drain()

    def close(self) -> None:
        """End the threads; call `drain` first."""
        if self._probing is not None:
            self._probing.cancel()
        self._sender.close()
        if self._late is not None:
            self._late.close()
