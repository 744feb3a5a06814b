"""The front end: checks requests, scores from its view of the state, and proposes decisions."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from math import hypot, inf
from struct import Struct
from time import perf_counter
from typing import Any

import msgspec

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import Acknowledged, DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.feature_model import FeatureModel
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import SECOND
from topstory.serving.journal.records import Decided
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.admission import QueueTime, overloaded
from topstory.serving.service.inputs import OutOfRange, context_of
from topstory.serving.service.receipts import Receipt, issued, redeemed
from topstory.serving.service.replies import Reply, unexpected
from topstory.serving.service.transport import Transport, Wanted
from topstory.serving.service.view import View, VisibleState

log = logging.getLogger("topstory.serving")

LOOK_SECONDS = 0.1  # between two looks at how many articles there are


class PendingRequest(msgspec.Struct, frozen=True, gc=False):
    """A request for a decision, checked, and where the answer goes."""

    request: DecideRequest
    pool: str
    user: tuple[float, ...]
    reply: Reply[Decision]
    key: str  # the name of the caller's API key
    asked: float  # when, by perf_counter


class FrontEnd:
    """Answers clients; the sequencer makes changes durable, wherever it is.

    All requests of one turn of the event loop are decided together: by one kernel call for each
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
        limits = config.limits
        self._limit, self._norm = limits.magnitude, limits.context_norm or inf
        self._dimension, self._short = config.context, min(self._limit, self._norm)
        self._payoffs = limits.payoffs or (-limits.magnitude, limits.magnitude)
        self.keeps_visitors = config.journal.visitors == "given"
        self.queue, self._looked = QueueTime(limits.queue_seconds), 0.0
        self.outliers: Counter[str] = Counter()  # refused: contexts and payoffs out of range
        self._pending: list[PendingRequest] = []  # of this turn of the event loop

    def ask(self, request: DecideRequest, reply: Reply[Decision], key: str = "") -> None:
        """Decide what to show to a user. The reply gets the answer; raises ApiError at once."""
        pool = self._default if request.pool is None else request.pool
        if pool not in self.config.pools:
            raise unknown_pool(pool)
        user = request.user
        if (
            not isinstance(user, tuple)
            or len(user) != self._dimension
            or not hypot(*user) <= self._short
        ):  # not the ordinary case
            user = self._checked(user)
        queue = self.queue
        after = queue.waiting + queue.each.get(pool, 0.0)
        if after > queue.limit and queue.waiting:
            raise queue.refusal()
        queue.waiting = after
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._turn)
        self._pending.append(PendingRequest(request, pool, user, reply, key, perf_counter()))

    def _checked(self, user: tuple[float, ...] | dict[str, Any]) -> tuple[float, ...]:
        try:
            return context_of(user, self.features, self._dimension, self._limit, self._norm)
        except OutOfRange:
            self.outliers["context"] += 1
            raise

    def pay(self, request: FeedbackRequest, reply: Reply[Acknowledged], key: str = "") -> None:
        """Record what a decision paid. The reply gets the answer; raises ApiError at once."""
        try:
            receipt = redeemed(self.signer, request, self._payoffs, self.view.now())
        except OutOfRange:
            self.outliers["payoff"] += 1
            raise
        self._transport.pay(Payment((receipt,), (request.payoff,), (key,), request, reply))

    def take_outliers(self) -> dict[str, int]:
        """What was refused since the last call, by kind."""
        taken = dict(self.outliers)
        self.outliers.clear()
        return taken

    def ask_again(self, pending: Sequence[PendingRequest]) -> None:
        """Decide these in the next turn, before those who came later."""
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._turn)
        self._pending = [*pending, *self._pending]

    def _turn(self) -> None:
        pending, self._pending = self._pending, []
        queue, now = self.queue, perf_counter()
        if now - pending[0].asked > queue.limit:
            pending = self._in_time(pending, now)
        if now - self._looked > LOOK_SECONDS:
            self._looked, at = now, self.view.now()
            for name, decider in self.view.latest().deciders.items():
                queue.expect(name, len(decider.pool.listing(at).ids), self._dimension)
        # By pool: requests for one article alone share a kernel call, others have their own.
        pools: dict[str, tuple[list[PendingRequest], list[PendingRequest]]] = {}
        for each in pending:
            found = pools.get(each.pool)
            if found is None:
                found = pools[each.pool] = ([], [])
            found[each.request.slots > 1 or each.request.exclude != ()].append(each)
        left: list[PendingRequest] = []  # for another turn: what came meanwhile has its turn before
        made: dict[str, tuple[int, float]] = {}
        began = now
        for pool, (plain, others) in pools.items():
            size = queue.slice(pool)
            if len(plain) + len(others) > size:
                left += plain[size:] + others[max(0, size - len(plain)) :]
                plain, others = plain[:size], others[: max(0, size - len(plain))]
            for group in ([plain] if plain else []) + [[each] for each in others]:
                ids = [each.request.request for each in group]
                batch = DecisionBatch(self, pool, ids, group)
                try:
                    self._transport.propose(batch)
                except Exception:
                    batch.denied(range(len(group)), unexpected())
            ended = perf_counter()
            made[pool] = len(plain) + len(others), ended - began
            began = ended
        if left:
            if not self._pending:
                asyncio.get_running_loop().call_soon(self._turn)
            self._pending = left + self._pending
        queue.turned(Counter(each.pool for each in self._pending), made, began)

    def _in_time(self, pending: list[PendingRequest], now: float) -> list[PendingRequest]:
        """Those that did not wait for too long; the others are refused after all."""
        late = now - self.queue.limit
        for each in pending:
            if each.asked < late:
                batch = DecisionBatch(self, each.pool, [each.request.request], [each])
                batch.denied((0,), overloaded("the decision waited for too long"))
        return [each for each in pending if each.asked >= late]


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
        user = self.source.pack(*each.user)
        return self.pool, user, each.request.exclude, each.request.slots

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
        if request.slots == 1 and not request.exclude:
            users = [each.user for each in pending]
            chosen = decider.decide_all(users, buckets, first, at)
        else:  # it is the only one
            (user,), (bucket,) = [each.user for each in pending], buckets
            exclude = decider.pool.known(request.exclude, at)
            chosen = [decider.decide(user, bucket, first, at, exclude, request.slots)]
        teaches, keeps = traffic.teaches, source.keeps_visitors
        return [
            Decided(
                pool=self.pool,
                user=source.pack(*each.user),
                article=one.article,
                bucket=bucket,
                propensity=one.propensity,
                expires=at + source.window,
                model_version=state.number,
                teaches=teaches[bucket],
                ranking=one.ranking,
                exclude=exclude,
                request=each.request.request,
                slots=each.request.slots,
                draw=number if drawn else None,
                key=each.key,
                visitor=visitor if each.request.visitor else b"",
                bucket_propensity=one.own,
                visitor_id=(each.request.visitor or "") if keeps else "",
            )
            for number, each, visitor, bucket, one in zip(
                range(first, first + len(pending)), pending, visitors, buckets, chosen, strict=True
            )
        ]

    def made(self, places: Sequence[int], first: int, decided: Sequence[Decided]) -> None:
        """Answer with decisions, numbered from `first`."""
        signer, pending = self.source.signer, self.pending
        for i, place in enumerate(places):
            try:
                pending[place].reply.grant(issued(signer, first + i, decided[i]))
            except Exception:  # the others get theirs all the same
                log.exception("an answer could not be delivered")

    def earlier(self, place: int, number: int, decided: Decided) -> None:
        """Answer with a decision."""
        self.made((place,), number, (decided,))

    def outdated(self, places: Sequence[int]) -> None:
        """Decide again, from the pool as it is by now."""
        self.source.ask_again([self.pending[place] for place in places])

    def denied(self, places: Sequence[int], error: ApiError) -> None:
        """Answer with an error."""
        for place in places:
            try:
                self.pending[place].reply.refuse(error)
            except Exception:
                log.exception("an answer could not be delivered")


class Payment(msgspec.Struct, eq=False, gc=False):
    """A payoff that was reported, and where the outcome goes."""

    receipts: tuple[Receipt]
    payoffs: tuple[float]
    keys: tuple[str]
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
