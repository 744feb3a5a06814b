"""Compiles and loads kernels before a visitor comes, not while one waits."""

from __future__ import annotations

import gc
from struct import pack

import numpy as np
from msgspec.structs import replace

from topstory.serving.journal.records import ArticleFacts, Decided, Paid
from topstory.serving.state.decider import Decider
from topstory.serving.state.pool import Pool
from topstory.serving.state.traffic import Traffic


def warm_up(known: Pool, traffic: Traffic, facts: ArticleFacts | None = None) -> None:
    """Call every kernel once, on a copy of a pool.

    `facts` are of the first article that an empty pool is about to get: its number of features is
    compiled into the kernels of some models.
    """
    copy = Pool(known.name, known.policy.copy(), known.dimension)
    if facts is None:
        article = next(iter(known.articles.values()), None)
        facts = _any_article(known) if article is None else article.facts
    facts = replace(facts, levers=None)  # which would lead past most kernels
    copy.use_event_features(known.event)
    copy.place(facts, 0)
    user = warm_up_scoring(Decider(copy, traffic), 0 if facts.begins is None else facts.begins)
    context = pack(f"<{len(user)}d", *user)
    decided = Decided(copy.name, context, facts.id, 0, 1.0, 0, 0, teaches=True)
    copy.show(decided)
    copy.pay(decided, Paid(1, 1.0))
    copy.learn()
    copy.policy.estimates(user, [facts.id])
    copy.policy.model.ready(copy.policy.model.slots([facts.id]))  # what workers read


def _any_article(pool: Pool) -> ArticleFacts:
    """An article that the policy has learned, or one that it could."""
    model = pool.policy.model
    learned = next((name for name in model.roster.ids if name), None)
    if learned is not None:
        return ArticleFacts(learned)
    count = 0 if model.prior is None else model.prior.features
    return ArticleFacts("-", (1.0,) * count or None)


def warm_up_scoring(decider: Decider, at: int) -> tuple[float, ...]:
    """Call the kernels that score, for a user who is returned; ApiError if nothing can be shown."""
    user = (*[0.0] * (decider.pool.dimension - 1), 1.0)
    count = decider.pool.event.varying
    if count:
        decider.decide(
            user, 0, 1, at, (), 2, lambda listing: np.zeros((len(listing.ids), count), np.float32)
        )
        return user
    decider.decide_all([user], [0], 1, at)
    decider.decide(user, 0, 1, at, slots=2)
    decider.scored(np.array(user), decider.pool.listing(at))
    return user


def freeze_garbage_collector() -> None:
    """Leave all present objects out of garbage collection: scanning them would delay visitors."""
    gc.collect()
    gc.freeze()
