"""The worker's end of the transport over the socket pair.

A socket carries no calls: a proposal is scored here before it is sent. The numbers of its decisions
are not known yet, so their randomness depends on others, which are drawn here and recorded.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import Any

from topstory.serving.api.errors import ApiError
from topstory.serving.journal.records import Decided
from topstory.serving.service.transport import LocalProposal, Payments
from topstory.serving.service.view import View
from topstory.serving.workers.link import SendMessage
from topstory.serving.workers.wire import (
    Denied,
    Earlier,
    FromLearner,
    Outdated,
    Paying,
    Proposed,
    Settled,
    Taken,
)

MAX_DRAW = 2**62


# A question that the learner has not answered yet: a proposal or payments, the place, the decision.
_Waiting = tuple[Any, int, Decided | None]


class SocketTransport:
    """Sends proposals and payments to the learner, and hands over its answers."""

    def __init__(self, view: View, send: SendMessage) -> None:
        self._view, self._send = view, send
        self._number = 0  # of the last question
        self._waiting: dict[int, _Waiting] = {}
        self._draw = secrets.randbits(62)  # no other worker's
        self._payments: list[Payments] = []  # of this turn of the event loop

    def propose(self, proposal: LocalProposal) -> None:
        """Score, and have the learner make the decisions."""
        places, at = range(len(proposal.requests)), self._view.now()
        try:
            decided = proposal.decide(places, self._draw, at, drawn=True)
        except ApiError as error:
            self._send_refused(proposal, at, error)
            return
        self._draw = (self._draw + len(decided)) % MAX_DRAW
        self._send_proposed(proposal, at, places, decided)

    def _send_refused(self, proposal: LocalProposal, at: int, error: ApiError) -> None:
        """There is nothing to show; a request that was decided before still gets its answer."""
        with_id = [place for place, request in enumerate(proposal.requests) if request is not None]
        without = [place for place, request in enumerate(proposal.requests) if request is None]
        proposal.denied(without, error)
        if with_id:
            decided = [_undecided(proposal, place) for place in with_id]
            self._send_proposed(proposal, at, with_id, decided, error)

    def _send_proposed(
        self,
        proposal: LocalProposal,
        at: int,
        places: Sequence[int],
        decided: Sequence[Decided],
        error: ApiError | None = None,
    ) -> None:
        waiting = [(proposal, *each) for each in zip(places, decided, strict=True)]
        seen, pool = proposal.scored_from, proposal.pool
        listing = seen.deciders[pool].pool.listing(at)
        holds = (seen.editions[pool], listing.begins, listing.ends)
        why = None if error is None else (error.status, error.reason, error.message)
        self._send(Proposed(self._ask(waiting), pool, *holds, list(decided), why))

    def pay(self, payments: Payments) -> None:
        """Have the learner record payoffs."""
        if not self._payments:
            asyncio.get_running_loop().call_soon(self._send_payments)
        self._payments.append(payments)

    def _send_payments(self) -> None:
        """All of one turn in one message: the learner can take them together."""
        payments, self._payments = self._payments, []
        receipts = [receipt for each in payments for receipt in each.receipts]
        payoffs = [payoff for each in payments for payoff in each.payoffs]
        waiting = [(each, place, None) for each in payments for place in range(len(each.receipts))]
        self._send(Paying(self._ask(waiting), receipts, payoffs))

    def _ask(self, waiting: Sequence[_Waiting]) -> int:
        """Number questions; returns the first number."""
        first = self._number + 1
        self._number += len(waiting)
        self._waiting.update(zip(range(first, first + len(waiting)), waiting, strict=True))
        return first

    def received(self, message: FromLearner) -> None:
        """Hand over what became of proposals and payments."""
        if isinstance(message, Taken):
            asker, places, decided = self._answered(message)
            asker.made(places, message.number, decided)
        elif isinstance(message, Settled):
            for number, repeated in zip(message.numbers, message.repeated, strict=True):
                asker, place, _ = self._waiting.pop(number)
                asker.settled((place,), repeated)
        elif isinstance(message, Earlier):
            asker, place, _ = self._waiting.pop(message.first)
            asker.earlier(place, message.number, message.decided)
        elif isinstance(message, Outdated):
            asker, places, _ = self._answered(message)
            asker.outdated(places)
        elif isinstance(message, Denied):
            asker, places, _ = self._answered(message)
            asker.denied(places, ApiError(message.status, message.reason, message.message))

    def _answered(self, message: Taken | Outdated | Denied) -> tuple[Any, list[int], list[Any]]:
        """Questions that were answered together: all were asked by one."""
        numbers = range(message.first, message.first + message.count)
        waiting = [self._waiting.pop(number) for number in numbers]
        places, decided = [place for _, place, _ in waiting], [each for _, _, each in waiting]
        return waiting[0][0], places, decided


def _undecided(proposal: LocalProposal, place: int) -> Decided:
    """A request's id and what it is for, though there is nothing to show."""
    pool, user, exclude, slots = proposal.wanted(place)
    return Decided(
        pool=pool,
        user=user,
        article="",
        bucket=0,
        propensity=0.0,
        expires=0,
        model_version=0,
        teaches=False,
        exclude=exclude,
        request=proposal.requests[place],
        slots=slots,
    )
