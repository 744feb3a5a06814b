"""Kernels are compiled before the first visitor comes, not while he waits."""

from __future__ import annotations

from topstory.serving.deciding import Decider
from topstory.serving.pool import Pool
from topstory.serving.records import ArticleFacts
from topstory.serving.service import Service


def warm_up(service: Service) -> None:
    """Decide, show and pay once on a copy of every pool's policy."""
    for decider in service.deciders.values():
        known = decider.pool
        copy = Pool(known.name, known.policy.copy(), known.dimension)
        article = next(iter(known.articles.values()), None)
        learned = next((name for name in known.policy.model.roster.ids if name), "-")
        facts = ArticleFacts(learned) if article is None else article.facts
        copy.place(facts, 0)
        user = [0.0] * (known.dimension - 1) + [1.0]
        at = 0 if facts.begins is None else facts.begins
        Decider(copy, decider.traffic).decide(user, 0, 0, at, slots=2)
        copy.policy.shown(user, facts.id)
        copy.policy.paid(user, facts.id, 1.0)
