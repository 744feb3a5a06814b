"""Logs of articles chosen by a randomised policy, with recorded propensities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from topstory.events.log import EventLog
from topstory.events.simulator.live import LivePolicy, Visit, article_id, introduce


def logged_by(policy: LivePolicy, uniform: EventLog, visits: Iterator[Visit]) -> EventLog:
    """The visits of the uniform log, with the articles that the policy shows instead."""
    position, payoff = uniform.position.copy(), np.empty(len(uniform), np.float32)
    propensity = np.empty(len(uniform), np.float32)
    articles, known = dict(uniform.articles), set[str]()
    for visit in visits:
        introduce(policy, visit.pool, articles, known)
        choice = policy.choose(visit.user, list(visit.pool))
        chance = getattr(choice, "propensity", None)
        if chance is None or not 0 < chance <= 1:
            raise ValueError(
                f"visit {visit.number}: the policy's choice has propensity {chance!r}; "
                "a log needs the probability of each choice, in (0, 1]"
            )
        article = article_id(choice)
        position[visit.number] = visit.pool.index(article)
        payoff[visit.number] = visit.payoff(article)
        propensity[visit.number] = chance
    return replace(uniform, position=position, payoff=payoff, recorded_propensity=propensity)
