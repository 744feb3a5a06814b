"""Why a visitor is shown a story: what each article promises, and what the visitor adds to that."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import msgspec
import numpy as np

from topstory.kernels.buckets import DEPLOYMENT, LEARNING, UNIFORM
from topstory.kernels.compilation import Floats
from topstory.serving.api.messages import BUCKETS, Bucket
from topstory.serving.state.decider import Decider
from topstory.serving.state.pool import Pool

LISTED = 12  # articles in an explanation


class Candidate(msgspec.Struct, frozen=True):
    """An article as the policy sees it for one visitor."""

    id: str
    title: str
    picture: str
    estimate: float  # of the payoff
    bonus: float | None  # for being uncertain; None: nothing is known, it comes first
    chances: dict[Bucket, float]  # of being chosen, by bucket


class Reason(msgspec.Struct, frozen=True):
    """What one number of the visitor's context adds to the first article's lead."""

    name: str
    value: float
    adds: float


class Explanation(msgspec.Struct, frozen=True):
    """Why the first of these, and not the second."""

    bucket: Bucket
    article: Candidate
    runner_up: Candidate | None
    lead: float  # estimate of the article above the runner-up's
    reasons: tuple[Reason, ...]  # the largest first; with `rest` they sum to the lead
    rest: float  # of the lead: what does not depend on the visitor
    candidates: tuple[Candidate, ...]
    articles: int


def explain(
    decider: Decider,
    user: Sequence[float],
    at: int,
    names: Sequence[str],
    bucket: int = DEPLOYMENT,
    article: str | None = None,
) -> Explanation:
    """Explain a choice by the model as it is now; without an `article`, the likeliest one."""
    pool, policy = decider.pool, decider.pool.policy
    ids = list(decider.pool.listing(at).ids)
    if article is not None and article not in ids:
        if article not in pool.articles:
            raise KeyError(article)
        ids.append(article)
    if not ids:
        raise KeyError("no article can be shown now")
    estimates, widths = policy.estimates(user, ids), policy.widths(user, ids)
    bonuses = policy.explorer.scores(estimates, widths) - estimates
    chances = _chances(decider, user, ids, estimates)
    by = estimates if bucket == DEPLOYMENT else estimates + bonuses
    order = [int(place) for place in np.argsort(-by, kind="stable")]
    first = order[0] if article is None else ids.index(article)
    second = next((place for place in order if place != first), None)

    def candidate(place: int) -> Candidate:
        return _candidate(
            pool, ids[place], float(estimates[place]), float(bonuses[place]), chances[:, place]
        )

    listed = tuple(candidate(place) for place in order[:LISTED])
    chosen = candidate(first)
    if second is None:
        return Explanation(BUCKETS[bucket], chosen, None, 0.0, (), 0.0, listed, len(ids))
    lead = float(estimates[first] - estimates[second])
    reasons = _reasons(pool, user, [ids[first], ids[second]], names, lead)
    rest = lead - sum(reason.adds for reason in reasons)
    return Explanation(
        BUCKETS[bucket], chosen, candidate(second), lead, reasons, rest, listed, len(ids)
    )


def _chances(decider: Decider, user: Sequence[float], ids: list[str], estimates: Floats) -> Floats:
    """(buckets, articles)."""
    count = len(estimates)
    chances = np.zeros((len(BUCKETS), count))
    policy = decider.pool.policy
    chances[LEARNING] = policy.probabilities(user, ids)
    best = estimates == estimates.max()
    chances[DEPLOYMENT] = best / best.sum()
    chances[UNIFORM] = 1 / count
    return chances


def _candidate(
    pool: Pool, article: str, estimate: float, bonus: float, chances: Floats
) -> Candidate:
    facts = pool.articles[article].facts
    return Candidate(
        *(article, facts.title or article, facts.picture, estimate),
        bonus=bonus if isfinite(bonus) else None,
        chances={name: float(chances[place]) for place, name in enumerate(BUCKETS)},
    )


def _reasons(
    pool: Pool, user: Sequence[float], pair: list[str], names: Sequence[str], lead: float
) -> tuple[Reason, ...]:
    """What the lead loses if the visitor were nothing of one segment: exact for linear models."""
    reasons = []
    for place, value in enumerate(user[:-1]):
        if value == 0:
            continue
        without = [0.0 if other == place else x for other, x in enumerate(user)]
        first, second = pool.policy.estimates(without, pair)
        name = names[place] if place < len(names) else f"segment {place + 1}"
        reasons.append(Reason(name, value, lead - float(first - second)))
    return tuple(sorted(reasons, key=lambda reason: -abs(reason.adds)))
