"""The service without HTTP: decide, learn, edit; every change goes through the journal."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from struct import Struct

from topstory.serving.api.errors import Refused
from topstory.serving.api.messages import (
    Acknowledged,
    ArticleRequest,
    DecideRequest,
    Decision,
    FeedbackRequest,
)
from topstory.serving.config.feature_model import FeatureModel
from topstory.serving.config.schema import Config
from topstory.serving.journal.group_commit import Commit, overloaded
from topstory.serving.journal.records import ArticleFacts, Decided, Paid, Placed, Removed
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.article_input import facts_of
from topstory.serving.service.inputs import Asking, context_of
from topstory.serving.service.receipts import Ticket, issued, redeemed
from topstory.serving.service.recent_decisions import Remembered
from topstory.serving.service.replies import Awaited, Everyone, Reply, attempt
from topstory.serving.service.sequencer import Ledger, not_written
from topstory.serving.state.decider import Chosen, Decider
from topstory.serving.state.pool import Pool
from topstory.serving.state.recovery import Opening
from topstory.serving.state.traffic import Traffic
from topstory.serving.state.warm_up import warm_up

log = logging.getLogger("topstory.serving")


class Service(Ledger):
    """Decides from the state that the journal has made, and changes it only through the journal."""

    def __init__(self, config: Config, opening: Opening, signer: Signer) -> None:
        super().__init__(config, opening)
        self.signer = signer
        self.features: FeatureModel | None = opening.features
        self._pack = Struct(f"<{config.context}d").pack
        self._asking: list[Asking] = []  # in this turn of the event loop
        self.deciders = {
            name: Decider(self.state.pools[name], Traffic(config.traffic_of(name), name))
            for name in config.pools
        }
        self._default = next(iter(config.pools))

    # -- deciding --

    async def decide(self, asked: DecideRequest) -> Decision:
        """Show an article to a user."""
        reply: Awaited[Decision] = Awaited()
        self.ask(asked, reply)
        return await reply.answer

    def ask(self, asked: DecideRequest, reply: Reply[Decision]) -> None:
        """The same; the reply gets the answer, unless the request is refused at once.

        All who ask in one turn of the event loop are decided for together.
        """
        decider = self.decider(asked.pool)
        limit = self.config.limits.magnitude
        user = context_of(asked.user, self.features, self.state.dimension, limit)
        self._ask(Asking(asked, decider, user, reply))

    def _ask(self, asking: Asking, _: str | None = None) -> None:
        if not self._asking:
            asyncio.get_running_loop().call_soon(self._turn)
        self._asking.append(asking)

    def _turn(self) -> None:
        asked, self._asking = self._asking, []
        at = self.clock.now()
        new: dict[str, list[Asking]] = {}  # by pool
        requests: set[str] = set()
        for pool in self.turns.held():  # whom the last edit held up is among those who ask
            if pool not in self._edits:
                self.turns.through(pool, self)
        for each in asked:
            pool, request = each.decider.pool.name, each.asked.request
            if pool in self._edits:  # what is decided after an edit must see it
                self.turns.hold(pool, self)
                self._edits[pool].then(partial(self._ask, each))
            elif request is None:
                new.setdefault(pool, []).append(each)
            elif request in requests:
                self._ask(each)  # its twin comes first
            else:
                attempt(each.reply, self._look, each, at, new)
                requests.add(request)
        for group in new.values():
            plain = [each for each in group if each.asked.slots == 1 and not each.asked.exclude]
            if plain:
                attempt(Everyone(each.reply for each in plain), self._decide_together, plain, at)
            if len(plain) < len(group):
                for each in group:
                    if each.asked.slots > 1 or each.asked.exclude:
                        attempt(each.reply, self._decide_alone, each, at)

    def _look(self, each: Asking, at: int, new: dict[str, list[Asking]]) -> None:
        """Deliver the earlier decision of the same request; if there is none, it is new."""
        asked = each.asked
        assert asked.request is not None
        wanted = (each.decider.pool.name, self._pack(*each.user), asked.exclude, asked.slots)
        if self.far(asked.request, at, each.looked):
            self.look_for(asked.request, wanted, at, each.reply, partial(self._looked, each, at))
            return
        made = self.made_before(asked.request, wanted, at, each.looked)
        if made is None:
            new.setdefault(each.decider.pool.name, []).append(each)
        else:
            self._deliver([made], [each.reply])

    def _looked(self, each: Asking, at: int, made: Remembered | None) -> None:
        if made is None:
            self._ask(each._replace(looked=at))
        else:
            self._deliver([made], [each.reply])

    def _decide_together(self, group: list[Asking], at: int) -> None:
        """For users of one pool who want the story position alone: by one kernel call."""
        first, decider = self._number + 1, group[0].decider
        self.certain(pool=decider.pool.name)
        buckets = [each.bucket(first + place) for place, each in enumerate(group)]
        chosen = decider.decide_all([each.user for each in group], buckets, first, at)
        told = zip(group, buckets, chosen, strict=True)
        self._record(group, [self._decided(*each, at) for each in told], at)

    def _decide_alone(self, each: Asking, at: int) -> None:
        number, asked = self._number + 1, each.asked
        self.certain(pool=each.decider.pool.name)
        bucket = each.bucket(number)
        chosen = each.decider.decide(each.user, bucket, number, at, asked.exclude, asked.slots)
        self._record([each], [self._decided(each, bucket, chosen, at)], at)

    def _decided(self, each: Asking, bucket: int, chosen: Chosen, at: int) -> Decided:
        asked, decider = each.asked, each.decider
        return Decided(
            pool=decider.pool.name,
            user=self._pack(*each.user),
            article=chosen.article,
            bucket=bucket,
            propensity=chosen.propensity,
            expires=at + self._window,
            model_version=self.state.number,
            teaches=decider.traffic.teaches[bucket],
            ranking=chosen.ranking,
            exclude=asked.exclude,
            request=asked.request,
            slots=asked.slots,
        )

    def _record(self, group: list[Asking], decided: list[Decided], at: int) -> None:
        made = self.take(decided, at)
        self._deliver(made, [each.reply for each in group])
        for each in group[len(made) :]:
            each.reply.refuse(overloaded())

    def _deliver(self, made: list[Remembered], replies: list[Reply[Decision]]) -> None:
        """Answer once the decisions, all of one commit, are in the journal; or at once: relaxed."""
        committing = made[0].committing
        if committing is None or not self.durable:
            self._delivered(made, replies, None)
        else:
            committing.then(partial(self._delivered, made, replies))

    def _delivered(
        self, made: list[Remembered], replies: list[Reply[Decision]], failure: str | None
    ) -> None:
        for each, reply in zip(made, replies, strict=False):
            try:
                if failure is None:
                    reply.grant(issued(self.signer, each.number, each.decided))
                else:
                    reply.refuse(not_written(failure))
            except Exception:  # the others are told all the same
                log.exception("somebody could not be told of a decision")

    # -- learning --

    async def feedback(self, given: FeedbackRequest) -> Acknowledged:
        """Take in what a decision paid: once, and never lost once this has returned."""
        reply: Awaited[Acknowledged] = Awaited()
        self.pay(given, reply)
        return await reply.answer

    def pay(self, given: FeedbackRequest, reply: Reply[Acknowledged]) -> None:
        """The same; the reply gets the answer, unless the request is refused at once."""
        limit = self.config.limits.magnitude
        ticket = redeemed(self.signer, given, limit, self.clock.now())
        self.pay_for(ticket, given, reply)

    def pay_for(self, ticket: Ticket, given: FeedbackRequest, reply: Reply[Acknowledged]) -> None:
        """The same, once it is known which decision it is."""
        if self.looks.far and self.memory.get(ticket[0]) is None:
            self.look_up(ticket, reply, lambda made: self._pay(made, given, reply))
        else:
            self._pay(self.known(ticket), given, reply)

    def _pay(self, made: Remembered, given: FeedbackRequest, reply: Reply[Acknowledged]) -> None:
        coming = made.committing or made.paying
        if coming is not None:  # also a duplicate, which waits for its first copy's commit
            coming.then(partial(self._pay_after, made.committing, made, given, reply))
        elif made.payoff is None:
            self.certain(made.number)
            _, made.paying = self.append(Paid(made.number, given.payoff), self.clock.now())
            made.paying.then(partial(self._paid, given, reply))
        elif made.payoff == given.payoff:
            reply.grant(Acknowledged(given.decision, given.payoff, repeated=True))
        else:
            told = f"this decision's payoff is {made.payoff}, not {given.payoff}"
            raise Refused(409, "payoff_conflict", told)

    def _pay_after(
        self,
        decision: Commit | None,
        made: Remembered,
        given: FeedbackRequest,
        reply: Reply[Acknowledged],
        failure: str | None,
    ) -> None:
        if decision is not None and failure is not None:
            reply.refuse(not_written(failure))
        else:
            attempt(reply, self._pay, made, given, reply)

    def _paid(
        self, given: FeedbackRequest, reply: Reply[Acknowledged], failure: str | None
    ) -> None:
        if failure is None:
            reply.grant(Acknowledged(given.decision, given.payoff, repeated=False))
        else:
            reply.refuse(not_written(failure))

    # -- editing --

    async def put_article(self, pool: str, article: str, said: ArticleRequest) -> None:
        """Add an article or change it, effective when this returns."""
        decider = self.decider(pool)
        found = decider.pool
        facts = facts_of(article, said, self.features, self.config.limits.magnitude)
        if not len(found.policy.model.roster):  # then the editor waits for a compiler, no visitor
            _check(found, facts)
            await asyncio.to_thread(warm_up, found, decider.traffic, facts)
        await self.settled(pool)
        known = article in found.articles
        if not known and len(found.articles) >= self.config.limits.articles:
            raise Refused(
                409, "too_many_articles", f"pool {pool!r} holds {len(found.articles)} articles"
            )
        _check(found, facts)
        await self._edit(pool, Placed(pool, facts))

    async def remove_article(self, pool: str, article: str) -> None:
        """Forget an article, effective when this returns."""
        found = self.decider(pool).pool
        await self.settled(pool)
        if article not in found.articles:
            raise unknown_article(pool, article)
        await self._edit(pool, Removed(pool, article))

    async def _edit(self, pool: str, record: Placed | Removed) -> None:
        _, commit = self.append(record, self.clock.now())
        self._edits[pool] = commit
        failure = await commit
        if failure is not None:
            raise not_written(failure)

    # -- at the door --

    def decider(self, pool: str | None) -> Decider:
        """The decider of a pool that is served."""
        found = self.deciders.get(self._default if pool is None else pool)
        if found is None:
            raise Refused(404, "unknown_pool", f"there is no pool {pool!r}")
        return found


def _check(pool: Pool, facts: ArticleFacts) -> None:
    try:
        pool.check(facts)
    except ValueError as error:
        raise Refused(409, "features_conflict", str(error)) from None


def unknown_article(pool: str, article: str) -> Refused:
    """There is none of that id."""
    return Refused(404, "unknown_article", f"pool {pool!r} has no article {article!r}")
