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
from topstory.serving.service.admission import SLICE_SECONDS, QueueTime, overloaded
from topstory.serving.service.event_contexts import EventContexts
from topstory.serving.service.inputs import OutOfRange, context_of, redeemed
from topstory.serving.service.proposals import (
    DecisionBatch,
    PaymentBatch,
    PendingRequest,
    refuse_all,
)
from topstory.serving.service.replies import Reply, unexpected
from topstory.serving.service.transport import Transport
from topstory.serving.service.view import View
from topstory.serving.service.waiting_requests import WaitingRequests

MAX_TOGETHER = 128  # decisions without a look at the time
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
        self._waiting, self._called = WaitingRequests(), False  # whether a turn is to come
        self._payments: PaymentBatch | None = None  # of this turn
        self._most_payments = limits.waiting

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
        self._waiting.add(PendingRequest(request, pool, user, reply, key, perf_counter()))
        if not self._called:
            self._call_turn()

    def check_room(self) -> None:
        """Raise an error if one more decision would be refused, whatever its pool.

        Much is asked at the same time when little is left of the room: to refuse an array takes a
        twentieth of the time of decoding it and refusing each of its requests.
        """
        queue = self.queue
        if queue.waiting and queue.waiting + queue.least > queue.limit:
            raise queue.refusal()

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
        elif len(batch.replies) >= self._most_payments:
            self.check_payments()
        batch.receipts.append(receipt)
        batch.payoffs.append(request.payoff)
        batch.keys.append(key)
        batch.decisions.append(request.decision)
        batch.replies.append(reply)

    def check_payments(self) -> None:
        """Raise an error if one more payoff would be refused: that is known before it is read."""
        batch = self._payments
        if batch is not None and len(batch.replies) >= self._most_payments:
            raise overloaded("too many payoffs wait for the disk")

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
        self._waiting.add_first(pending)
        if not self._called:
            self._call_turn()

    def _call_turn(self) -> None:
        self._called = True
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        queue, waiting, now = self.queue, self._waiting, perf_counter()
        self._called = False
        late = waiting.take_before(now - queue.limit)
        if late:
            too_late = overloaded("the decision waited for too long")
            refuse_all([each.reply for each in late], too_late)
        if now - self._looked > LOOK_SECONDS:
            self._looked, at = now, self.view.now()
            for name, decider in self.view.latest().deciders.items():
                queue.expect(name, len(decider.pool.listing(at).ids), self._dimension)
        made: dict[str, tuple[int, float]] = {}
        began = now
        for pool, count in waiting.counts().items():
            taken = waiting.take(pool, queue.slices.get(pool, count))
            queue.proposing(pool, len(taken))
            left = self._propose(pool, taken, began + SLICE_SECONDS)
            if left:
                queue.postponed(pool, len(left))
                waiting.add_first(left)
            ended = perf_counter()
            made[pool] = len(taken) - len(left), ended - began
            began = ended
        if waiting and not self._called:  # for another turn: others are answered before
            self._call_turn()
        queue.turned(waiting.counts(), made, began)

    def _propose(
        self, pool: str, taken: list[PendingRequest], until: float
    ) -> Sequence[PendingRequest]:
        """Requests for one article alone share a kernel call, others have their own.

        Returns those for which there was no time: one may take a hundred times as long as those
        from which the estimate was made.
        """
        plain = [each for each in taken if each.request.slots == 1 and not each.request.exclude]
        groups = [plain[i : i + MAX_TOGETHER] for i in range(0, len(plain), MAX_TOGETHER)]
        if len(plain) < len(taken):
            groups += [[each] for each in taken if each.request.slots > 1 or each.request.exclude]
        for place, group in enumerate(groups):
            if place and perf_counter() > until:
                return [each for some in groups[place:] for each in some]
            batch = DecisionBatch(self, pool, [each.request.request for each in group], group)
            try:
                self._transport.propose(batch)
            except Exception:
                batch.denied(range(len(group)), unexpected())
        return ()


def unknown_pool(pool: str) -> ApiError:
    """The error if there is no pool of that name."""
    return ApiError(404, "unknown_pool", f"there is no pool {pool!r}")
