"""The worker's end of the transport over the socket pair.

A socket carries no calls: a proposal is scored here before it is sent. The numbers of its decisions
are not known yet, so their randomness depends on others, which are drawn here and recorded.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial
from typing import Any

from topstory.serving.api.errors import ApiError
from topstory.serving.journal.records import Decided
from topstory.serving.service.transport import LocalProposal, Payments
from topstory.serving.workers.link import SendMessage
from topstory.serving.workers.shared_memory.mapped_view import MappedState, MappedView
from topstory.serving.workers.wire import (
    Denied,
    Earlier,
    FromLearner,
    NothingToShow,
    Outdated,
    Paying,
    Proposed,
    Settled,
    Taken,
)

MAX_DRAW = 2**62

# A request that awaits the learner's reply: a proposal or payments, the place, the decision.
_Waiting = tuple[Any, int, Decided | None]
# The pool's edition, and the times for which its list of articles holds.
_Seen = tuple[int, int, int]


class SocketTransport:
    """Sends proposals and payments to the learner, and hands over its answers."""

    def __init__(self, view: MappedView, send: SendMessage) -> None:
        self._view, self._send = view, send
        self._number = 0  # of the last request
        self._waiting: dict[int, _Waiting] = {}
        self._draw = secrets.randbits(62)  # no other worker's

    def propose(self, proposal: LocalProposal) -> None:
        """Score, and have the learner make the decisions."""
        seen, scored = self._view.read(partial(self._score, proposal, self._view.now()))
        if isinstance(scored, ApiError):
            self._send_nothing(proposal, seen, scored)
            return
        self._draw = (self._draw + len(scored)) % MAX_DRAW
        first = self._register([(proposal, *each) for each in enumerate(scored)])
        self._send(Proposed(first, proposal.pool, *seen, list(scored)))

    def _score(
        self, proposal: LocalProposal, at: int, state: MappedState
    ) -> tuple[_Seen, Sequence[Decided] | ApiError]:
        """The decisions, or why there are none, and what they were scored from."""
        places, pool = range(len(proposal.requests)), proposal.pool
        scored: Sequence[Decided] | ApiError
        try:
            scored = proposal.decide(places, self._draw, at, state, drawn=True)
        except ApiError as error:
            scored = error
        listing = state.deciders[pool].pool.listing(at)
        return (state.editions[pool], listing.begins, listing.ends), scored

    def _send_nothing(self, proposal: LocalProposal, seen: _Seen, error: ApiError) -> None:
        """There is nothing to show; a request that was decided before still gets its answer."""
        waiting: list[_Waiting] = []
        requests = []
        for place, request in enumerate(proposal.requests):
            if request is None:
                proposal.denied((place,), error)
            else:
                waiting.append((proposal, place, None))
                requests.append((request, proposal.wanted(place)))
        if requests:
            why = (error.status, error.reason, error.message)
            first = self._register(waiting)
            self._send(NothingToShow(first, proposal.pool, *seen, requests, why))

    def pay(self, payments: Payments) -> None:
        """Have the learner record payoffs."""
        given = payments.receipts, payments.payoffs, payments.keys
        first = self._register([(payments, place, None) for place in range(len(given[0]))])
        self._send(Paying(first, *given))

    def _register(self, waiting: Sequence[_Waiting]) -> int:
        """Number requests; returns the first number."""
        first = self._number + 1
        self._number += len(waiting)
        self._waiting.update(zip(range(first, first + len(waiting)), waiting, strict=True))
        return first

    def received(self, message: FromLearner) -> None:
        """Hand over what became of proposals and payments."""
        if isinstance(message, Taken):
            origin, places, decided = self._answered(message)
            origin.made(places, message.number, decided)
        elif isinstance(message, Settled):
            for number, repeated in zip(message.numbers, message.repeated, strict=True):
                origin, place, _ = self._waiting.pop(number)
                origin.settled((place,), repeated)
        elif isinstance(message, Earlier):
            origin, place, _ = self._waiting.pop(message.first)
            origin.earlier(place, message.number, message.decided)
        elif isinstance(message, Outdated):
            origin, places, _ = self._answered(message)
            origin.outdated(places)
        elif isinstance(message, Denied):
            origin, places, _ = self._answered(message)
            origin.denied(places, ApiError(message.status, message.reason, message.message))

    def _answered(self, message: Taken | Outdated | Denied) -> tuple[Any, list[int], list[Any]]:
        """Requests that were answered together: all belong to one proposal."""
        numbers = range(message.first, message.first + message.count)
        waiting = [self._waiting.pop(number) for number in numbers]
        places, decided = [place for _, place, _ in waiting], [each for _, _, each in waiting]
        return waiting[0][0], places, decided
