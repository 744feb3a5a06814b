"""The service of one process, without HTTP: a sequencer, a front end beside it, and edits."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import (
    Acknowledged,
    ArticleRequest,
    DecideRequest,
    Decision,
    FeedbackRequest,
    LeversRequest,
)
from topstory.serving.config.feature_model import FeatureModel
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import Clock
from topstory.serving.journal.records import ArticleFacts, Edit, Levers, Placed, Removed
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.admission import UNIT_SECONDS, SpareTime
from topstory.serving.service.frontend import FrontEnd, unknown_pool
from topstory.serving.service.inputs import facts_of, levers_of
from topstory.serving.service.live_view import LiveView
from topstory.serving.service.recent_estimates import RecentEstimates
from topstory.serving.service.replies import Awaited
from topstory.serving.service.sequencer.ledger import Ledger
from topstory.serving.service.sequencer.sequencer import Sequencer
from topstory.serving.state.decider import Decider
from topstory.serving.state.levers import is_pinned
from topstory.serving.state.pool import Pool, edit_of
from topstory.serving.state.recovery.data_folder import DataFolder
from topstory.serving.state.warm_up import warm_up


class Service:
    """Decides, learns and takes edits; every change goes through the journal."""

    def __init__(self, config: Config, folder: DataFolder, signer: Signer) -> None:
        self.config, self.signer = config, signer
        self.ledger = ledger = Ledger(config, folder)
        self.state, self.journal = ledger.state, ledger.journal
        self.commits, self.recent = ledger.commits, ledger.recent
        self.sequencer = Sequencer(config, ledger)
        view = LiveView(config, ledger)
        self.deciders = view.deciders
        self.estimates = RecentEstimates(self.deciders, self.recent)
        self.spare_time = SpareTime()  # for explanations
        self.reading = SpareTime(config.limits.connections)  # for what articles did: all may wait
        # The sequencer is right here: it is its own transport.
        self.front = FrontEnd(config, view, self.sequencer, signer, folder.features)

    @property
    def clock(self) -> Clock:
        """The journal's clock."""
        return self.ledger.clock

    @property
    def features(self) -> FeatureModel | None:
        """The feature model, if raw profiles are taken."""
        return self.front.features

    # -- deciding and learning --

    async def decide(self, request: DecideRequest) -> Decision:
        """Decide what to show to a user."""
        reply: Awaited[Decision] = Awaited()
        self.front.ask(request, reply)
        return await reply.answer

    async def feedback(self, request: FeedbackRequest) -> Acknowledged:
        """Record what a decision paid: once, and never lost once this has returned."""
        reply: Awaited[Acknowledged] = Awaited()
        self.front.pay(request, reply)
        return await reply.answer

    # -- editing --

    # An edit with the client's id is made once. One that comes again, perhaps after other edits,
    # changes nothing: else a copy that was delayed on its way could undo them.

    async def put_article(
        self, pool: str, article: str, request: ArticleRequest, edit: str | None = None
    ) -> None:
        """Add an article or change it; this holds when the call returns."""
        decider = self.decider(pool)
        found = decider.pool
        held, now = found.articles.get(article), self.ledger.clock.now()
        was, limit = None if held is None else held.facts, self.config.limits.magnitude
        facts = facts_of(article, request, self.features, limit, was, now)
        _check_cost(self.config, found, facts)
        if not len(found.policy.model.roster):  # the editor waits for the compiler, no visitor does
            _check(found, facts)
            await asyncio.to_thread(warm_up, found, decider.traffic, facts)
        await self.sequencer.edit_turn(pool)
        before = found.articles.get(article)
        if before is not None:  # levers have edits of their own
            facts = replace(facts, levers=before.facts.levers)
        record = Placed(pool, facts, edit)
        if was_made(found, record):
            if article not in found.articles:
                message = f"this edit was made before, and article {article!r} was removed since"
                raise ApiError(409, "edit_superseded", message)
            return
        known = article in found.articles
        if not known and len(found.articles) >= self.config.limits.articles:
            raise ApiError(
                409, "too_many_articles", f"pool {pool!r} holds {len(found.articles)} articles"
            )
        _check(found, facts)
        await self.sequencer.edit(record)

    async def put_levers(
        self, pool: str, article: str, request: LeversRequest, edit: str | None = None
    ) -> None:
        """Pin, boost or limit an article, or undo that; this holds when the call returns."""
        found = self.decider(pool).pool
        levers = levers_of(request)
        await self.sequencer.edit_turn(pool)
        if article not in found.articles:
            raise unknown_article(pool, article)
        record = Placed(pool, replace(found.articles[article].facts, levers=levers), edit)
        if was_made(found, record):
            return
        if levers is not None:
            self._check_slot(found, article, levers)
        await self.sequencer.edit(record)

    def _check_slot(self, pool: Pool, article: str, levers: Levers) -> None:
        now = self.clock.now()
        if not is_pinned(levers, now):
            if levers.pin is not None:
                raise ApiError(422, "bad_levers", "a pin's `until` must be in the future")
            return
        for other, each in pool.articles.items():
            held = each.facts.levers
            if other != article and held and held.pin == levers.pin and is_pinned(held, now):
                message = f"slot {levers.pin} is pinned to article {other!r}: undo that first"
                raise ApiError(409, "slot_taken", message)

    async def remove_article(self, pool: str, article: str, edit: str | None = None) -> None:
        """Remove an article and what was learned of it; this holds when the call returns."""
        found = self.decider(pool).pool
        await self.sequencer.edit_turn(pool)
        record = Removed(pool, article, edit)
        if was_made(found, record):
            return
        if article not in found.articles:
            raise unknown_article(pool, article)
        await self.sequencer.edit(record)

    def decider(self, pool: str) -> Decider:
        """The decider of a pool."""
        found = self.deciders.get(pool)
        if found is None:
            raise unknown_pool(pool)
        return found

    def warm_up(self) -> None:
        """Compile and load all kernels that requests need."""
        for decider in self.deciders.values():
            warm_up(decider.pool, decider.traffic)

    def close(self) -> None:
        """End the threads; drain the commits first."""
        self.ledger.close()


def was_made(pool: Pool, record: Edit) -> bool:
    """Whether the edit of this id was made before; ApiError if that was another one."""
    made = None if record.edit is None else pool.edits.get(record.edit)
    if made is not None and made != edit_of(record):
        message = f"this Idempotency-Key was used for another edit ({made}): use a new one"
        raise ApiError(409, "edit_conflict", message)
    return made is not None


def _check(pool: Pool, facts: ArticleFacts) -> None:
    try:
        pool.check(facts)
    except ValueError as error:
        raise ApiError(409, "features_conflict", str(error)) from None


def unknown_article(pool: str, article: str) -> ApiError:
    """The error if a pool has no article of that id."""
    return ApiError(404, "unknown_article", f"pool {pool!r} has no article {article!r}")


def _check_cost(config: Config, pool: Pool, facts: ArticleFacts) -> None:
    """Refuse an article that would make the model too large, or decisions too slow."""
    articles = len(pool.articles) + (facts.id not in pool.articles)
    check_size(config, articles, len(facts.features or ()), pool.event.features)


def check_size(config: Config, articles: int, features: int, event: int = 0) -> None:
    """Refuse a model of so many articles with so many features each: too large, or too slow.

    `event`: how many numbers of a context are features of the articles.
    """
    d, limits = config.context, config.limits
    own, m = d - event, features + event
    if own * m > limits.shared_features:
        raise ApiError(
            *(422, "bad_article"),
            f"context × features may be at most {limits.shared_features} "
            f"(`limits.shared_features`), got {own} × {m}",
        )
    seconds = UNIT_SECONDS * articles * (own * (1 + event)) ** 2
    if seconds > limits.decision_seconds:
        raise ApiError(
            *(409, "too_many_articles"),
            f"a decision among {articles} articles with contexts of {d} numbers takes about "
            f"{seconds:.2g} seconds; at most {limits.decision_seconds:g} "
            "(`limits.decision_seconds`)",
        )
