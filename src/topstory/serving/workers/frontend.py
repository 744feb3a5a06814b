"""What a worker does by itself: it checks, scores and signs. The learner makes it so."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from struct import Struct
from time import monotonic_ns
from typing import Any, NamedTuple

import msgspec

from topstory.serving.api.errors import Refused
from topstory.serving.api.messages import Acknowledged, DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.feature_model import FeatureModel
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import SECOND
from topstory.serving.journal.records import Decided
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.inputs import context_of
from topstory.serving.service.receipts import Ticket, issued, redeemed
from topstory.serving.service.replies import Everyone, Reply, attempt
from topstory.serving.state.decider import Chosen, Decider
from topstory.serving.state.pool import Listing
from topstory.serving.workers.shared_memory.mirror import Mirror, Seen
from topstory.serving.workers.wire import (
    Denied,
    Earlier,
    FromLearner,
    Outdated,
    Payments,
    Proposed,
    Settled,
    Taken,
)

Say = Callable[[msgspec.Struct], None]


class _Asking(NamedTuple):
    """Who asks, and where the answer goes."""

    asked: DecideRequest
    pool: str
    user: tuple[float, ...]
    reply: Reply[Decision]

    @property
    def plain(self) -> bool:
        """Whether the story position alone is asked for, from the whole pool."""
        return self.asked.slots == 1 and not self.asked.exclude


class _Giving(NamedTuple):
    """Who says what a decision paid."""

    ticket: Ticket
    given: FeedbackRequest
    reply: Reply[Acknowledged]


class Front:
    """Takes the same questions as a `Service`, and has the learner answer for what lasts.

    A decision's number is the learner's to give, so its randomness hangs on another one, which is
    drawn here and kept in the record.
    """

    def __init__(
        self,
        config: Config,
        mirror: Mirror,
        signer: Signer,
        features: FeatureModel | None,
        say: Say,
    ) -> None:
        self.config, self._mirror, self._signer, self._features = config, mirror, signer, features
        self._say = say
        self._default = next(iter(config.pools))
        self._pack = Struct(f"<{config.context}d").pack
        self._window = int(config.window_seconds * SECOND)
        self._asking: list[_Asking] = []  # in this turn of the event loop
        self._giving: list[_Giving] = []
        self._number = 0  # of the last question to the learner
        self._waiting: dict[int, tuple[Any, Decided | None]] = {}
        self._draw = secrets.randbits(62)  # no other worker's

    # -- deciding --

    def ask(self, asked: DecideRequest, reply: Reply[Decision]) -> None:
        """Show an article to a user; the reply gets the answer, unless it is refused at once."""
        pool = self._default if asked.pool is None else asked.pool
        if pool not in self.config.pools:
            raise Refused(404, "unknown_pool", f"there is no pool {pool!r}")
        limit = self.config.limits.magnitude
        user = context_of(asked.user, self._features, self.config.context, limit)
        self._ask(_Asking(asked, pool, user, reply))

    def _ask(self, asking: _Asking) -> None:
        self._wake()
        self._asking.append(asking)

    def _wake(self) -> None:
        if not self._asking and not self._giving:
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        asked, self._asking = self._asking, []
        given, self._giving = self._giving, []
        pools: dict[str, list[_Asking]] = {}
        for each in asked:
            pools.setdefault(each.pool, []).append(each)
        for group in pools.values():
            plain = [each for each in group if each.plain]
            for some in (plain, *([each] for each in group if not each.plain)):
                attempt(Everyone([each.reply for each in some]), self._propose, some)
        if given:
            first = self._wait_for([(each, None) for each in given])
            tickets = [each.ticket for each in given]
            self._say(Payments(first, tickets, [each.given.payoff for each in given]))

    def _propose(self, group: list[_Asking]) -> None:
        """Decide for users of one pool, and have the learner take the decisions."""
        if not group:
            return
        while True:
            seen = self._mirror.look()
            decider = seen.deciders[group[0].pool]
            at = monotonic_ns() // 1000 + seen.ahead
            buckets = [self._bucket(decider, each, self._draw + i) for i, each in enumerate(group)]
            chosen, refused = [], None
            try:
                chosen = self._chosen(decider, group, buckets, at)
            except Refused as error:
                refused = error
            if self._mirror.holds(seen.turn):
                break
        listing = decider.pool.listing(at)
        if refused is not None:
            self._refuse(group, seen, listing, refused)
            return
        decided = [
            self._decided(each, seen, decider, at, (bucket, self._draw + i, one))
            for i, (each, bucket, one) in enumerate(zip(group, buckets, chosen, strict=True))
        ]
        self._draw = (self._draw + len(group)) % 2**62
        self._say_proposed(group, decided, seen, listing)

    def _refuse(self, group: list[_Asking], seen: Seen, listing: Listing, refused: Refused) -> None:
        """There is nothing to show; who asked before still gets what was decided then."""
        with_id = [each for each in group if each.asked.request is not None]
        for each in group:
            if each.asked.request is None:
                each.reply.refuse(refused)
        if with_id:
            nothing = Chosen("", 0.0)
            decider = seen.deciders[group[0].pool]
            decided = [self._decided(each, seen, decider, 0, (0, 0, nothing)) for each in with_id]
            self._say_proposed(with_id, decided, seen, listing, refused)

    def _say_proposed(
        self,
        group: list[_Asking],
        decided: list[Decided],
        seen: Seen,
        listing: Listing,
        refused: Refused | None = None,
    ) -> None:
        first = self._wait_for(list(zip(group, decided, strict=True)))
        pool = group[0].pool
        why = None if refused is None else (refused.status, refused.reason, refused.message)
        holds = (listing.begins, listing.ends)
        self._say(Proposed(first, pool, seen.editions[pool], *holds, decided, why))

    def _bucket(self, decider: Decider, each: _Asking, draw: int) -> int:
        """Without any id a visitor is a stranger, a new one every time."""
        asked = each.asked
        return decider.traffic.bucket(asked.visitor or asked.request or f"#{draw}")

    def _chosen(
        self, decider: Decider, group: list[_Asking], buckets: list[int], at: int
    ) -> list[Chosen]:
        if group[0].plain:
            return decider.decide_all([each.user for each in group], buckets, self._draw, at)
        (each,), (bucket,) = group, buckets
        asked = each.asked
        return [decider.decide(each.user, bucket, self._draw, at, asked.exclude, asked.slots)]

    def _decided(
        self,
        each: _Asking,
        seen: Seen,
        decider: Decider,
        at: int,
        how: tuple[int, int, Chosen],
    ) -> Decided:
        bucket, draw, chosen = how
        asked = each.asked
        return Decided(
            pool=each.pool,
            user=self._pack(*each.user),
            article=chosen.article,
            bucket=bucket,
            propensity=chosen.propensity,
            expires=at + self._window,
            model_version=seen.number,
            teaches=decider.traffic.teaches[bucket],
            ranking=chosen.ranking,
            exclude=asked.exclude,
            request=asked.request,
            slots=asked.slots,
            draw=draw,
        )

    # -- learning --

    def pay(self, given: FeedbackRequest, reply: Reply[Acknowledged]) -> None:
        """Take in what a decision paid; the reply gets the answer, unless it is refused at once."""
        now = monotonic_ns() // 1000 + self._mirror.look().ahead
        ticket = redeemed(self._signer, given, self.config.limits.magnitude, now)
        self._wake()
        self._giving.append(_Giving(ticket, given, reply))

    # -- the learner --

    def _wait_for(self, asked: Sequence[tuple[Any, Decided | None]]) -> int:
        first = self._number + 1
        self._number += len(asked)
        self._waiting.update(zip(range(first, first + len(asked)), asked, strict=True))
        return first

    def heard(self, message: FromLearner) -> None:
        """What the learner made of it."""
        if isinstance(message, Taken):
            for i in range(message.count):
                asking, decided = self._waiting.pop(message.first + i)
                assert decided is not None
                asking.reply.grant(issued(self._signer, message.number + i, decided))
        elif isinstance(message, Settled):
            for number, repeated in zip(message.numbers, message.repeated, strict=True):
                giving, _ = self._waiting.pop(number)
                given = giving.given
                giving.reply.grant(Acknowledged(given.decision, given.payoff, repeated))
        elif isinstance(message, Earlier):
            asking, _ = self._waiting.pop(message.first)
            asking.reply.grant(issued(self._signer, message.number, message.decided))
        elif isinstance(message, Outdated):
            for i in range(message.count):
                self._ask(self._waiting.pop(message.first + i)[0])
        elif isinstance(message, Denied):
            refused = Refused(message.status, message.reason, message.message)
            for i in range(message.count):
                self._waiting.pop(message.first + i)[0].reply.refuse(refused)
