"""What a front end hands to the sequencer: how to decide, and where the outcomes go."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import BUCKETS, Acknowledged, DecideRequest, Decision
from topstory.serving.journal.clock import as_datetime
from topstory.serving.journal.records import Decided
from topstory.serving.service.inputs import Receipt
from topstory.serving.service.replies import Refusable, Reply
from topstory.serving.service.transport import Wanted
from topstory.serving.service.view import VisibleState

if TYPE_CHECKING:
    from topstory.serving.service.frontend import FrontEnd

log = logging.getLogger("topstory.serving")


class PendingRequest(msgspec.Struct, frozen=True, gc=False):
    """A request for a decision, checked, and where the answer goes."""

    request: DecideRequest
    pool: str
    user: tuple[float, ...]
    reply: Reply[Decision]
    key: str  # the name of the caller's API key
    asked: float  # when, by perf_counter


class DecisionBatch(msgspec.Struct, eq=False):
    """Requests to one pool: how to decide for them, and where the outcomes go."""

    source: FrontEnd
    pool: str
    requests: list[str | None]  # their ids
    pending: list[PendingRequest]

    def is_current(self, at: int) -> bool:
        """Yes: it is scored when `decide` is called, from the newest state in view."""
        return True

    def wanted(self, place: int) -> Wanted:
        """What the request is for."""
        each = self.pending[place]
        source, user = self.source, each.user
        if source.events is not None:  # only the user's own numbers are compared
            (user,) = source.events.contexts([user], 0)
        return self.pool, source.pack(*user), each.request.exclude, each.request.slots

    def decide(
        self,
        places: Sequence[int],
        first: int,
        at: int,
        state: VisibleState | None = None,
        drawn: bool = False,
    ) -> list[Decided]:
        """Score and choose, from this state or the newest in view.

        Randomness depends on the decisions' numbers, counted from `first`. `drawn`: those are not
        their own, which are not known yet, so records have to keep them.
        """
        source = self.source
        state = state or source.view.latest()
        decider = state.deciders[self.pool]
        pending = [self.pending[place] for place in places]
        traffic, request = decider.traffic, pending[0].request
        # Without a visitor or request id, every request counts as a new visitor.
        visitors, buckets = traffic.split(
            each.request.visitor or each.request.request or f"#{number}"
            for number, each in enumerate(pending, first)
        )
        exclude: tuple[str, ...] = ()
        users, events = [each.user for each in pending], source.events
        if events is not None:
            users = events.contexts(users, at)
        if request.exclude:
            exclude = decider.pool.known(request.exclude, at)
        if events is not None and events.per_article:
            told = [
                visitor if each.request.visitor else b""
                for visitor, each in zip(visitors, pending, strict=True)
            ]
            chosen = [
                decider.decide(
                    user,
                    bucket,
                    first + i,
                    at,
                    exclude,
                    request.slots,
                    partial(events.numbers, decider.pool, at=at, visitor=visitor),
                )
                for i, (user, bucket, visitor) in enumerate(zip(users, buckets, told, strict=True))
            ]
            users = [
                (*user[: -1 - events.per_article], *one.numbers, user[-1])
                for user, one in zip(users, chosen, strict=True)
            ]
        elif request.slots == 1 and not request.exclude:
            chosen = decider.decide_all(users, buckets, first, at)
        else:  # it is the only one
            chosen = [decider.decide(users[0], buckets[0], first, at, exclude, request.slots)]
        teaches, keeps = traffic.teaches, source.keeps_visitors
        return [
            Decided(  # with more keywords Python would make a dict of them: five times as slow
                self.pool,
                source.pack(*user),
                one.article,
                bucket,
                one.propensity,
                at + source.window,
                state.number,
                teaches[bucket],
                one.ranking,
                exclude,
                request=each.request.request,
                slots=each.request.slots,
                draw=number if drawn else None,
                key=each.key,
                visitor=visitor if each.request.visitor else b"",
                bucket_propensity=one.own,
                visitor_id=(each.request.visitor or "") if keeps else "",
                withheld=one.withheld,
                pinned=one.pinned,
            )
            for number, each, user, visitor, bucket, one in zip(
                range(first, first + len(pending)),
                pending,
                users,
                visitors,
                buckets,
                chosen,
                strict=True,
            )
        ]

    def made(self, places: Sequence[int], first: int, decided: Sequence[Decided]) -> None:
        """Answer with decisions, numbered from `first`."""
        signer, pending = self.source.signer, self.pending
        self.source.queue.answered(self.pool, len(places))
        for number, place, each in zip(count(first), places, decided, strict=False):
            try:
                pending[place].reply.grant(
                    Decision(
                        decision=signer.sign(number, each.expires),
                        article=each.article,
                        ranking=each.ranking or (each.article,),
                        bucket=BUCKETS[each.bucket],
                        propensity=each.propensity,
                        expires=as_datetime(each.expires),
                        model_version=each.model_version,
                    )
                )
            except Exception:  # the others get theirs all the same
                log.exception("an answer could not be delivered")

    def earlier(self, place: int, number: int, decided: Decided) -> None:
        """Answer with a decision."""
        self.made((place,), number, (decided,))

    def outdated(self, places: Sequence[int]) -> None:
        """Decide again, from the pool as it is by now."""
        self.source.queue.postponed(self.pool, len(places))
        self.source.ask_again([self.pending[place] for place in places])

    def denied(self, places: Sequence[int], error: ApiError) -> None:
        """Answer with an error."""
        self.source.queue.answered(self.pool, len(places))
        refuse_all([self.pending[place].reply for place in places], error)


class PaymentBatch(msgspec.Struct, eq=False):
    """Payoffs that were reported in one turn, and where their outcomes go."""

    receipts: list[Receipt] = []
    payoffs: list[float] = []
    keys: list[str] = []
    decisions: list[str] = []  # as their clients named them
    replies: list[Reply[Acknowledged]] = []

    def settled(self, places: Sequence[int], repeated: bool) -> None:
        """Acknowledge them."""
        decisions, payoffs, replies = self.decisions, self.payoffs, self.replies
        for place in places:
            try:
                replies[place].grant(Acknowledged(decisions[place], payoffs[place], repeated))
            except Exception:  # the others get theirs all the same
                log.exception("an answer could not be delivered")

    def denied(self, places: Sequence[int], error: ApiError) -> None:
        """Answer with an error."""
        refuse_all([self.replies[place] for place in places], error)


def refuse_all(replies: Iterable[Refusable], error: ApiError) -> None:
    """Answer all of them with an error."""
    for each in replies:
        try:
            each.refuse(error)
        except Exception:
            log.exception("an answer could not be delivered")
