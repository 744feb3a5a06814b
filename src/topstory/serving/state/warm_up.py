"""Kernels are compiled before a visitor comes, not while he waits."""

from __future__ import annotations

import gc
from struct import pack

from topstory.serving.journal.records import ArticleFacts, Decided
from topstory.serving.state.decider import Decider
from topstory.serving.state.pool import Pool
from topstory.serving.state.traffic import Traffic


def warm_up(known: Pool, traffic: Traffic, facts: ArticleFacts | None = None) -> None:
    """Do with a copy of a pool all that kernels are called for, once.

    `facts` are of the first article that an empty pool is about to get: how many features it has
    is compiled into the kernels of some models.
    """
    copy = Pool(known.name, known.policy.copy(), known.dimension)
    if facts is None:
        article = next(iter(known.articles.values()), None)
        learned = next((name for name in known.policy.model.roster.ids if name), "-")
        facts = ArticleFacts(learned) if article is None else article.facts
    copy.place(facts, 0)
    user = (*[0.0] * (known.dimension - 1), 1.0)
    at = 0 if facts.begins is None else facts.begins
    decider = Decider(copy, traffic)
    decider.decide_all([user], [0], 1, at)
    decider.decide(user, 0, 1, at, slots=2)
    context = pack(f"<{len(user)}d", *user)
    decided = Decided(copy.name, context, facts.id, 0, 1.0, 0, 0, teaches=True)
    copy.show(decided)
    copy.pay(decided, 1, 1.0)
    copy.learn()
    copy.policy.estimates(user, [facts.id])
    copy.policy.model.ready(copy.policy.model.slots([facts.id]))  # what workers read


def settle_down() -> None:
    """What is there by now stays: to look through it for garbage would hold up every visitor."""
    gc.collect()
    gc.freeze()
