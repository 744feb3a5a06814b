"""The service without HTTP: decide, learn, edit; every change goes through the journal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from struct import Struct

import numpy as np

from topstory.serving.buckets import BUCKETS
from topstory.serving.clock import SECOND, Clock
from topstory.serving.commits import Commits, Done
from topstory.serving.config import Config
from topstory.serving.deciding import Decider
from topstory.serving.editing import facts_of
from topstory.serving.feature_model import FeatureModel
from topstory.serving.journal import JournalError
from topstory.serving.messages import (
    Acknowledged,
    ArticleRequest,
    DecideRequest,
    Decision,
    FeedbackRequest,
)
from topstory.serving.opening import Opening
from topstory.serving.pool import Pool
from topstory.serving.records import AnyRecord, Decided, Entry, Paid, Placed, Removed
from topstory.serving.refusals import Refused, Unavailable
from topstory.serving.remembering import Memory, Remembered
from topstory.serving.signing import Signer
from topstory.serving.times import moment
from topstory.serving.traffic import Traffic


class Service:
    """Decides from the state that the journal has made, and changes it only through the journal.

    A record is applied to the state after its commit, in the journal's order: so the state is
    never ahead of the disk, and nothing has to be taken back when a commit fails.
    """

    def __init__(self, config: Config, opening: Opening, signer: Signer) -> None:
        self.config, self.signer = config, signer
        self.state, self.journal = opening.state, opening.journal
        self.features: FeatureModel | None = opening.features
        self.clock = Clock(after=self.state.at)
        limits = config.limits
        self.commits = Commits(self.journal, self._applied, self._lost, limits.waiting)
        self.memory = Memory(self.journal, limits.remembered, self.clock.now() + 1)
        self._pack = Struct(f"<{config.context}d").pack
        self._window = int(config.window_seconds * SECOND)
        self._number = max(self.state.number, opening.last)
        self._durable = config.journal.decisions == "durable"
        self._edits: dict[str, Done] = {}  # by pool
        self._start = opening.start
        self.deciders = {
            name: Decider(self.state.pools[name], Traffic(config.traffic_of(name), name))
            for name in config.pools
        }
        self._default = next(iter(config.pools))

    # -- deciding --

    async def decide(self, asked: DecideRequest) -> Decision:
        """Show an article to a user."""
        decider = self.decider(asked.pool)
        user = self._context(asked.user)
        if self._edits:
            await self._settled(decider.pool.name)
        # From looking for an earlier decision to making one nothing may come between.
        made = None if asked.request is None else self._made_before(asked, decider.pool, user)
        if made is None:
            made = self._decide(asked, decider, user)
        if self._durable:
            await self._committed(made.committing)
        return self._answer(made)

    def _decide(self, asked: DecideRequest, decider: Decider, user: list[float]) -> Remembered:
        number, at = self._number + 1, self.clock.now()
        # Without any id a visitor is a stranger every time: the decision's own number then.
        bucket = decider.traffic.bucket(asked.visitor or asked.request or f"#{number}")
        chosen = decider.decide(user, bucket, number, at, asked.exclude, asked.slots)
        decided = Decided(
            pool=decider.pool.name,
            user=self._pack(*user),
            article=chosen.article,
            bucket=bucket,
            propensity=chosen.propensity,
            expires=at + self._window,
            model_version=self.state.number,
            teaches=decider.traffic.teaches[bucket],
            ranking=chosen.ranking if asked.slots > 1 else (),
            exclude=asked.exclude,
            request=asked.request,
            slots=asked.slots,
        )
        entry, done = self._append(decided, at, awaited=self._durable)
        return self.memory.add(entry, decided, done)

    def _made_before(
        self, asked: DecideRequest, pool: Pool, user: list[float]
    ) -> Remembered | None:
        assert asked.request is not None
        try:
            made = self.memory.find_request(asked.request, self.clock.now() - self._window)
        except JournalError as error:
            raise Unavailable(f"the journal cannot be read: {error}") from None
        if made is None:
            return None
        was = made.decided
        same = (was.pool, was.user, was.exclude, was.slots) == (
            *(pool.name, self._pack(*user)),
            *(asked.exclude, asked.slots),
        )
        if not same:
            raise Refused(
                409, "request_conflict", f"request {asked.request!r} was made for something else"
            )
        return made

    def _answer(self, made: Remembered) -> Decision:
        decided = made.decided
        return Decision(
            decision=self.signer.sign(made.number, decided.expires),
            article=decided.article,
            ranking=decided.ranking or (decided.article,),
            bucket=BUCKETS[decided.bucket],
            propensity=decided.propensity,
            expires=moment(decided.expires),
            model_version=decided.model_version,
        )

    # -- learning --

    async def feedback(self, given: FeedbackRequest) -> Acknowledged:
        """Take in what a decision paid: once, and never lost once this has returned."""
        payoff = given.payoff
        limit = self.config.limits.magnitude
        if not math.isfinite(payoff) or abs(payoff) > limit:
            raise Refused(422, "bad_payoff", f"a payoff is a number from {-limit} to {limit}")
        number, expires = self.signer.check(given.decision)
        if self.clock.now() > expires:
            raise Refused(
                410, "expired_decision", "the window for this decision's feedback is over"
            )
        made = self._known(number)
        await self._committed(made.committing)
        while made.paying is not None:  # a duplicate waits for its first copy's commit
            await made.paying
        if made.payoff is not None:
            if made.payoff != payoff:
                raise Refused(
                    409, "payoff_conflict", f"this decision's payoff is {made.payoff}, not {payoff}"
                )
            return Acknowledged(given.decision, payoff, repeated=True)
        _, made.paying = self._append(Paid(number, payoff), self.clock.now())
        await self._committed(made.paying)
        return Acknowledged(given.decision, payoff, repeated=False)

    def _known(self, number: int) -> Remembered:
        try:
            made = self.memory.find(number)
        except JournalError as error:
            raise Unavailable(f"the journal cannot be read: {error}") from None
        if made is None:
            raise Refused(
                404, "unknown_decision", "this decision is not in the journal: it was never final"
            )
        return made

    # -- editing --

    async def put_article(self, pool: str, article: str, said: ArticleRequest) -> None:
        """Add an article or change it, effective when this returns."""
        found = self.decider(pool).pool
        await self._settled(pool)
        facts = facts_of(article, said, self.features, self.config.limits.magnitude)
        known = article in found.articles
        if not known and len(found.articles) >= self.config.limits.articles:
            raise Refused(
                409, "too_many_articles", f"pool {pool!r} holds {len(found.articles)} articles"
            )
        try:
            found.check(facts)
        except ValueError as error:
            raise Refused(409, "features_conflict", str(error)) from None
        await self._edit(pool, Placed(pool, facts))

    async def remove_article(self, pool: str, article: str) -> None:
        """Forget an article, effective when this returns."""
        found = self.decider(pool).pool
        await self._settled(pool)
        if article not in found.articles:
            raise unknown_article(pool, article)
        await self._edit(pool, Removed(pool, article))

    async def _edit(self, pool: str, record: Placed | Removed) -> None:
        _, done = self._append(record, self.clock.now())
        self._edits[pool] = done
        await self._committed(done)

    async def _settled(self, pool: str) -> None:
        """Wait for the edit that is on its way: what is decided after it must see it."""
        while pool in self._edits:
            await self._edits[pool]

    # -- the journal --

    def _append(self, record: AnyRecord, at: int, awaited: bool = True) -> tuple[Entry, Done]:
        entry = Entry(self._number + 1, at, record)
        done = self.commits.append(entry, awaited)
        self._number = entry.number
        return entry, done

    async def _committed(self, done: Done | None) -> None:
        failure = None if done is None else await done
        if failure is not None:
            raise Unavailable(f"the journal cannot be written: {failure}; nothing was changed")

    def _applied(self, batch: Sequence[Entry]) -> None:
        for entry in batch:
            record, decided = entry.record, None
            if isinstance(record, Paid):
                made = self.memory.find(record.decision)
                assert made is not None  # it was committed before it was paid
                decided = made.decided
                made.payoff, made.paying = record.payoff, None
            elif isinstance(record, Decided):
                shown = self.memory.get(entry.number)
                if shown is not None:
                    shown.committing = None
            elif isinstance(record, Placed | Removed):
                self._edits.pop(record.pool, None)
            self.state.apply(entry, decided, self._start)

    def _lost(self, batch: Sequence[Entry]) -> None:
        for entry in batch:
            record = entry.record
            if isinstance(record, Paid):
                made = self.memory.get(record.decision)
                if made is not None:
                    made.paying = None
            elif isinstance(record, Decided):
                self.memory.forget(entry.number)
            elif isinstance(record, Placed | Removed):
                self._edits.pop(record.pool, None)

    # -- at the door --

    def decider(self, pool: str | None) -> Decider:
        """The decider of a pool that is served."""
        found = self.deciders.get(self._default if pool is None else pool)
        if found is None:
            raise Refused(404, "unknown_pool", f"there is no pool {pool!r}")
        return found

    def _context(self, user: tuple[float, ...] | dict[str, object]) -> list[float]:
        if isinstance(user, dict):
            if self.features is None:
                raise Refused(
                    422, "no_feature_model", "raw profiles need a feature model: set `features`"
                )
            try:
                values = [float(value) for value in np.asarray(self.features.user(user))]
            except (KeyError, TypeError, ValueError) as error:
                raise Refused(422, "bad_profile", f"the profile cannot be used: {error}") from None
        else:
            values = list(user)
        if len(values) != self.state.dimension:
            raise Refused(
                *(422, "bad_context"),
                f"a context has {self.state.dimension} numbers here, got {len(values)}",
            )
        limit = self.config.limits.magnitude
        if not all(-limit <= value <= limit for value in values):
            raise Refused(422, "bad_context", f"a context's numbers are from {-limit} to {limit}")
        return values


def unknown_article(pool: str, article: str) -> Refused:
    """There is none of that id."""
    return Refused(404, "unknown_article", f"pool {pool!r} has no article {article!r}")
