"""The front end: checks requests, scores from its view of the state, and proposes decisions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from struct import Struct
from typing import NamedTuple

import msgspec

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import Acknowledged, DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.feature_model import FeatureModel
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import SECOND
from topstory.serving.journal.records import Decided
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.inputs import context_of
from topstory.serving.service.receipts import Receipt, issued, redeemed
from topstory.serving.service.replies import Reply, unexpected
from topstory.serving.service.transport import Transport, Wanted
from topstory.serving.service.view import View, VisibleState

log = logging.getLogger("topstory.serving")


class Visit(NamedTuple):
    """A request for a decision, checked, and where the answer goes."""

    request: DecideRequest
    pool: str
    user: tuple[float, ...]
    reply: Reply[Decision]


class FrontEnd:
    """Answers clients; what lasts is up to the sequencer, wherever that is.

    All who ask in one turn of the event loop are decided for together: by one kernel call for each
    pool, with one commit.
    """

    def __init__(
        self,
        config: Config,
        view: View,
        transport: Transport,
        signer: Signer,
        features: FeatureModel | None,
    ) -> None:
        self.config, self.view, self.signer, self.features = config, view, signer, features
        self.pack = Struct(f"<{config.context}d").pack
        self.window = int(config.window_seconds * SECOND)
        self._transport = transport
        self._default = next(iter(config.pools))
        self._limit = config.limits.magnitude
        self._visits: list[Visit] = []  # of this turn of the event loop

    def ask(self, request: DecideRequest, reply: Reply[Decision]) -> None:
        """Decide what to show to a user. The reply gets the answer; raises ApiError at once."""
        pool = self._default if request.pool is None else request.pool
        if pool not in self.config.pools:
            raise unknown_pool(pool)
        user = context_of(request.user, self.features, self.config.context, self._limit)
        if not self._visits:
            asyncio.get_running_loop().call_soon(self._turn)
        self._visits.append(Visit(request, pool, user, reply))

    def pay(self, request: FeedbackRequest, reply: Reply[Acknowledged]) -> None:
        """Record what a decision paid. The reply gets the answer; raises ApiError at once."""
        receipt = redeemed(self.signer, request, self._limit, self.view.now())
        self._transport.pay(Payment((receipt,), (request.payoff,), request, reply))

    def again(self, visits: Sequence[Visit]) -> None:
        """Decide for these in the next turn."""
        if not self._visits:
            asyncio.get_running_loop().call_soon(self._turn)
        self._visits += visits

    def _turn(self) -> None:
        visits, self._visits = self._visits, []
        # By pool: visits to the story position alone share a kernel call, others have their own.
        pools: dict[str, tuple[list[Visit], list[Visit]]] = {}
        for visit in visits:
            plain, others = pools.setdefault(visit.pool, ([], []))
            (others if visit.request.slots > 1 or visit.request.exclude else plain).append(visit)
        for plain, others in pools.values():
            for group in ([plain] if plain else []) + [[visit] for visit in others]:
                batch = DecisionBatch(self, group)
                try:
                    self._transport.propose(batch)
                except Exception:
                    batch.denied(range(len(group)), unexpected())


class DecisionBatch:
    """Visits to one pool: how to decide for them, and where the outcomes go."""

    __slots__ = ("_visits", "pool", "requests", "scored_from", "source")

    scored_from: VisibleState  # what it was scored from

    def __init__(self, source: FrontEnd, visits: list[Visit]) -> None:
        self.source, self.pool, self._visits = source, visits[0].pool, visits
        self.requests = [visit.request.request for visit in visits]

    def wanted(self, place: int) -> Wanted:
        """What the visit is for."""
        visit = self._visits[place]
        user = self.source.pack(*visit.user)
        return self.pool, user, visit.request.exclude, visit.request.slots

    def decide(
        self, places: Sequence[int], first: int, at: int, drawn: bool = False
    ) -> list[Decided]:
        """Score and choose, from the newest state in view.

        Randomness depends on the decisions' numbers, counted from `first`. `drawn`: those are not
        their own, which are not known yet, so records have to keep them.
        """
        return self.source.view.read(partial(self._decide, places, first, at, drawn))

    def _decide(
        self, places: Sequence[int], first: int, at: int, drawn: bool, state: VisibleState
    ) -> list[Decided]:
        self.scored_from = state
        decider, source = state.deciders[self.pool], self.source
        visits = [self._visits[place] for place in places]
        traffic, request = decider.traffic, visits[0].request
        # Without a visitor or request id, every visit counts as a new visitor.
        buckets = [
            traffic.bucket(visit.request.visitor or visit.request.request or f"#{number}")
            for number, visit in enumerate(visits, first)
        ]
        if request.slots == 1 and not request.exclude:
            users = [visit.user for visit in visits]
            chosen = decider.decide_all(users, buckets, first, at)
        else:  # it is the only one
            (user,), (bucket,) = [visit.user for visit in visits], buckets
            exclude, slots = request.exclude, request.slots
            chosen = [decider.decide(user, bucket, first, at, exclude, slots)]
        return [
            Decided(
                pool=self.pool,
                user=source.pack(*visit.user),
                article=one.article,
                bucket=bucket,
                propensity=one.propensity,
                expires=at + source.window,
                model_version=state.number,
                teaches=traffic.teaches[bucket],
                ranking=one.ranking,
                exclude=visit.request.exclude,
                request=visit.request.request,
                slots=visit.request.slots,
                draw=number if drawn else None,
            )
            for number, visit, bucket, one in zip(
                range(first, first + len(visits)), visits, buckets, chosen, strict=True
            )
        ]

    def made(self, places: Sequence[int], first: int, decided: Sequence[Decided]) -> None:
        """Answer with decisions, numbered from `first`."""
        signer, visits = self.source.signer, self._visits
        for i, place in enumerate(places):
            try:
                visits[place].reply.grant(issued(signer, first + i, decided[i]))
            except Exception:  # the others get theirs all the same
                log.exception("an answer could not be delivered")

    def earlier(self, place: int, number: int, decided: Decided) -> None:
        """Answer with a decision."""
        self.made((place,), number, (decided,))

    def outdated(self, places: Sequence[int]) -> None:
        """Decide again, from the pool as it is by now."""
        self.source.again([self._visits[place] for place in places])

    def denied(self, places: Sequence[int], error: ApiError) -> None:
        """Answer with an error."""
        for place in places:
            try:
                self._visits[place].reply.refuse(error)
            except Exception:
                log.exception("an answer could not be delivered")


class Payment(msgspec.Struct, eq=False, gc=False):
    """A payoff that was reported, and where the outcome goes."""

    receipts: tuple[Receipt]
    payoffs: tuple[float]
    request: FeedbackRequest
    reply: Reply[Acknowledged]

    def settled(self, places: Sequence[int], repeated: bool) -> None:
        """Acknowledge it."""
        request = self.request
        self.reply.grant(Acknowledged(request.decision, request.payoff, repeated))

    def denied(self, places: Sequence[int], error: ApiError) -> None:
        """Answer with an error."""
        self.reply.refuse(error)


def unknown_pool(pool: str) -> ApiError:
    """The error if there is no pool of that name."""
    return ApiError(404, "unknown_pool", f"there is no pool {pool!r}")
