"""The front end: checks requests, scores from its view of the state, and proposes decisions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from math import hypot, inf
from struct import Struct
from time import perf_counter
from typing import Any

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import Acknowledged, DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.feature_model import FeatureModel
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import SECOND
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.admission import QueueTime, overloaded
from topstory.serving.service.event_contexts import EventContexts
from topstory.serving.service.inputs import OutOfRange, context_of, redeemed
from topstory.serving.service.proposals import DecisionBatch, PaymentBatch, PendingRequest
from topstory.serving.service.replies import Reply, unexpected
from topstory.serving.service.transport import Transport
from topstory.serving.service.view import View

LOOK_SECONDS = 0.1  # between two looks at how many articles there are


class FrontEnd:
    """Answers clients; the sequencer makes changes durable, wherever it is.

    All requests of one turn of the event loop are decided together: by one kernel call for each
    pool, with one commit. So are all payoffs of one turn recorded.
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
        self.events = EventContexts.of(features)
        own = 0 if self.events is None else self.events.count
        self._dimension, self._short = config.context - own, min(self._limit, self._norm)
        self._payoffs = limits.payoffs or (-limits.magnitude, limits.magnitude)
        self.keeps_visitors = config.journal.visitors == "given"
        self.queue, self._looked = QueueTime(limits.queue_seconds), 0.0
        self.outliers: Counter[str] = Counter()  # refused: contexts and payoffs out of range
        self._pending: list[PendingRequest] = []  # of this turn of the event loop
        self._payments: PaymentBatch | None = None  # of this turn, too

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

    def check_room(self) -> None:
        """Raise an error if one more decision would be refused."""
        if self.queue.waiting >= self.queue.limit:
            raise self.queue.refusal()

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
        batch = self._payments
        if batch is None:
            batch = self._payments = PaymentBatch()
            asyncio.get_running_loop().call_soon(self._pay_turn)
        batch.receipts.append(receipt)
        batch.payoffs.append(request.payoff)
        batch.keys.append(key)
        batch.decisions.append(request.decision)
        batch.replies.append(reply)

    def _pay_turn(self) -> None:
        batch, self._payments = self._payments, None
        assert batch is not None
        try:
            self._transport.pay(batch)
        except Exception:
            batch.denied(range(len(batch.replies)), unexpected())

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
            size = queue.slices.get(pool, len(pending))
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


def unknown_pool(pool: str) -> ApiError:
    """The error if there is no pool of that name."""
    return ApiError(404, "unknown_pool", f"there is no pool {pool!r}")
