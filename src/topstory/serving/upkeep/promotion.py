"""A planned change of a pool's policy: checked, compared with the present one, and recorded."""

from __future__ import annotations

import asyncio
from contextlib import closing

from topstory.feature_identity import FeatureModelMismatch, same_feature_model
from topstory.policies import Policy
from topstory.policies.registry import MODELS
from topstory.policies.storage import describe
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import (
    PolicyChanged,
    PolicyChangeView,
    PolicyComparison,
    PolicyDescription,
    PolicyRequest,
    PolicyView,
)
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import as_datetime
from topstory.serving.journal.journal import JournalError
from topstory.serving.journal.records import ArticleFacts, Promoted
from topstory.serving.service.sequencer.influence import HourlyCounts
from topstory.serving.service.sequencer.remote_lookups import unreadable
from topstory.serving.service.service import Service, check_size, was_made
from topstory.serving.state.policy_file import PolicySize, policy_in, summary
from topstory.serving.state.pool import Pool
from topstory.serving.state.state_copy import PolicyCopying
from topstory.serving.state.warm_up import warm_up
from topstory.serving.upkeep.policy_comparison import compare


class Promotion:
    """Changes the policies of a running service; one at a time."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._turn = asyncio.Lock()  # a policy may take much memory
        self._counts = HourlyCounts()

    def view(self, pool: str) -> PolicyView:
        """The policy of a pool, and those before it."""
        return policy_view(self._service.decider(pool).pool)

    async def compare(self, pool: str, request: PolicyRequest) -> PolicyComparison:
        """The present policy and another one side by side. Nothing changes."""
        async with self._turn:
            found = self._service.decider(pool).pool
            candidate = await self._candidate(found, request.policy)
            return await self._compared(found, candidate)

    async def promote(
        self, pool: str, request: PolicyRequest, edit: str | None = None, key: str = ""
    ) -> PolicyChanged:
        """Give a pool another policy; it decides from one record on."""
        async with self._turn:
            service, decider = self._service, self._service.decider(pool)
            found = decider.pool
            known = _facts(found)
            candidate = await self._candidate(found, request.policy)
            comparison = await self._compared(found, candidate)
            trial = Pool(pool, candidate, found.dimension, event=found.event)
            trial.articles = dict(found.articles)
            # Before the switch: no visitor waits for the compiler.
            await asyncio.to_thread(warm_up, trial, decider.traffic)
            record = Promoted(pool, request.policy, edit, key, request.note)
            await service.sequencer.edit_turn(pool)
            if not was_made(found, record):
                self._count(pool)
                if _facts(found) != known:  # there were edits meanwhile
                    _check_articles(found, candidate)
                await service.sequencer.edit(record)
            return PolicyChanged(found.promoted, policy_view(found), comparison)

    async def revert(self, pool: str, edit: str | None = None, key: str = "") -> PolicyChanged:
        """Give a pool the policy that it had before, as it was then."""
        async with self._turn:
            service, found = self._service, self._service.decider(pool).pool
            record = Promoted(pool, None, edit, key)
            await service.sequencer.edit_turn(pool)
            if not was_made(found, record):
                if found.previous is None:
                    message = f"pool {pool!r} has had no other policy"
                    raise ApiError(409, "nothing_to_revert", message)
                _check_feature_model(found.previous.feature_model, self._feature_model)
                _check_articles(found, found.previous)
                await service.sequencer.edit(record)
            return PolicyChanged(found.promoted, policy_view(found))

    async def _candidate(self, pool: Pool, content: bytes) -> Policy:
        config, known = self._service.config, frozenset(pool.articles)
        features = self._feature_model
        policy = await asyncio.to_thread(_loaded, content, config, known, features)
        await asyncio.to_thread(check_candidate, policy, pool, config, features)
        return policy

    def _count(self, pool: str) -> None:
        """One policy more, if there were not too many: the journal keeps them all."""
        most = self._service.config.limits.promotions
        if self._counts.add(pool, self._service.clock.now()) > most:
            message = f"a pool may be given {most} policies in an hour (`limits.promotions`)"
            raise ApiError(429, "too_many_promotions", message)

    @property
    def _feature_model(self) -> str | None:
        features = self._service.features
        return None if features is None else features.identity

    async def _compared(self, pool: Pool, candidate: Policy) -> PolicyComparison:
        # Copies: the service goes on learning, and the candidate may not know all articles.
        copying = PolicyCopying(pool.policy)
        articles = [(article.facts, article.since) for article in pool.articles.values()]
        pool.sketches.append(copying)
        try:
            while copying.step():
                await asyncio.sleep(0)
        finally:
            pool.sketches.remove(copying)
        current, known = copying.copy, frozenset(facts.id for facts, _ in articles)

        def work() -> PolicyComparison:
            other = Pool(pool.name, candidate.copy(), pool.dimension, event=pool.event)
            for facts, since in articles:
                other.place(facts, since)
            with closing(self._service.journal.reopen()) as journal:
                return compare(journal, pool.name, current, other.policy, known)

        try:
            return await asyncio.to_thread(work)
        except JournalError as error:
            raise unreadable(error) from None


def check_candidate(policy: Policy, pool: Pool, config: Config, features: str | None) -> None:
    """ApiError if the pool cannot have this policy; `features`: the identity of its model."""
    if MODELS[policy.model.name].needs_log:
        raise ApiError(422, "bad_policy", f"a policy of {policy.model.name} cannot be served")
    # A policy of another feature model may have contexts of another length, too: first say why.
    _check_feature_model(policy.feature_model, features)
    _check_context(policy.model.dimension, config)
    _check_articles(pool, policy)
    counts = [len(facts.features or ()) for facts in _facts(pool)]
    event = pool.event.features
    shared = (config.context - event) * (max(counts, default=0) + event)
    if shared > config.limits.shared_features:
        message = f"context × features may be at most {config.limits.shared_features}, got {shared}"
        raise ApiError(422, "bad_policy", message)


def _check_context(dimension: int | None, config: Config) -> None:
    if dimension not in (None, config.context):
        raise ApiError(
            *(409, "context_conflict"),
            f"the policy was learned with contexts of {dimension} numbers, but the "
            f"service has {config.context}: train it with the service's own contexts",
        )


def _check_feature_model(identity: str | None, features: str | None) -> None:
    try:
        same_feature_model([("the policy", identity), ("the service", features)])
    except FeatureModelMismatch as error:
        raise ApiError(409, "feature_model_conflict", str(error)) from None


def _loaded(content: bytes, config: Config, known: frozenset[str], features: str | None) -> Policy:
    def check(size: PolicySize) -> None:
        _check_feature_model(size.feature_model, features)
        _check_context(size.dimension, config)
        check_size(config, len(known | size.articles), size.features)

    try:
        return policy_in(content, check)
    except ValueError as error:
        raise ApiError(422, "bad_policy", str(error)) from None


def _facts(pool: Pool) -> list[ArticleFacts]:
    return [article.facts for article in list(pool.articles.values())]


def _check_articles(pool: Pool, policy: Policy) -> None:
    try:
        pool.check_policy(policy)
    except ValueError as error:
        message = f"{error}: the policy must be trained with the articles as the pool has them"
        raise ApiError(409, "features_conflict", message) from None


def policy_view(pool: Pool) -> PolicyView:
    """The policy of a pool, and those before it."""
    return PolicyView(
        pool=pool.name,
        policy=_described(pool.policy),
        since=pool.promoted or None,
        previous=None if pool.previous is None else _described(pool.previous),
        changes=tuple(
            PolicyChangeView(
                *(each.record, as_datetime(each.at), each.kind, each.policy),
                *(each.file, each.key, each.note),
            )
            for each in reversed(pool.changes)
        ),
    )


def _described(policy: Policy) -> PolicyDescription:
    described = describe(policy)
    model, explorer = described["model"], described["explorer"]
    numbers = {**explorer["parameters"], **model["parameters"]}
    return PolicyDescription(
        summary=summary(policy),
        model=model["name"],
        explorer=explorer["name"],
        parameters={k: float(v) for k, v in numbers.items() if isinstance(v, int | float)},
        seed=policy.seed,
        feature_model=policy.feature_model,
        articles=len(policy.model.roster),
    )
