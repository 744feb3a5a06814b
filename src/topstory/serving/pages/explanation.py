"""Why a visitor is shown a story: what each article promises, and what the visitor adds to that."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from topstory.kernels.buckets import DEPLOYMENT, LEARNING, UNIFORM
from topstory.kernels.compilation import Floats
from topstory.policies import Policy
from topstory.serving.api.messages import BUCKETS, Bucket
from topstory.serving.journal.records import Decided
from topstory.serving.service.service import Service
from topstory.serving.state.levers import STORY, LeverPlan
from topstory.serving.state.pool import Pool

LISTED = 12  # articles in an explanation
Lever = Literal["pin", "boost", "limit"]
Bools = NDArray[np.bool_]
NO_LEVERS = LeverPlan({}, {}, {}, ())


class ScoredArticle(msgspec.Struct, frozen=True):
    """An article as the policy sees it for one visitor."""

    id: str
    title: str
    picture: str
    estimate: float  # of the payoff
    bonus: float | None  # for being uncertain; None: nothing is known, it comes first
    chances: dict[Bucket, float]  # of being chosen, by bucket
    boost: float = 1.0  # by an editor: what its estimate is multiplied by
    held: bool = False  # by an editor's limit, from this visit


class Reason(msgspec.Struct, frozen=True):
    """What one number of the visitor's context adds to the first article's lead."""

    name: str
    value: float
    adds: float


class Explanation(msgspec.Struct, frozen=True):
    """Why the first of these, and not the second."""

    bucket: Bucket
    article: ScoredArticle
    runner_up: ScoredArticle | None
    lead: float  # estimate of the article above the runner-up's
    reasons: tuple[Reason, ...]  # the largest first; with `rest` they sum to the lead
    rest: float  # of the lead: what does not depend on the visitor
    candidates: tuple[ScoredArticle, ...]
    articles: int
    lever: Lever | None = None  # an editor's, that decided


class ExplainedDecision(NamedTuple):
    """A decision that was made, as far as an explanation needs it; or one that could be."""

    bucket: int = DEPLOYMENT
    article: str | None = None  # None: the likeliest one
    pinned: bool | None = None  # None: if there is a pin now
    withheld: tuple[str, ...] = ()  # by limits


ANY = ExplainedDecision()


def recorded_decision(decided: Decided) -> ExplainedDecision:
    """What the journal knows of a decision."""
    return ExplainedDecision(decided.bucket, decided.article, decided.pinned, decided.withheld)


def explain(
    service: Service,
    name: str,
    user: Sequence[float],
    names: Sequence[str],
    decision: ExplainedDecision = ANY,
) -> Explanation:
    """Explain a choice of a pool by its model and its levers as they are now.

    An estimate below every possible payoff is shown as the least one: no click rate is negative.
    """
    pool = service.decider(name).pool
    policy, (least, _) = pool.policy, service.config.limits.payoffs or (-inf, inf)
    bucket, article, _, withheld = decision
    listing = pool.listing(service.clock.now())
    if article is not None and article not in pool.articles:
        raise KeyError(article)
    beside = (*withheld, *(() if article is None else (article,)))
    ids = list(dict.fromkeys((*listing.ids, *(each for each in beside if each in pool.articles))))
    if not ids:
        raise KeyError("no article can be shown now")
    estimates, widths = policy.estimates(user, ids), policy.widths(user, ids)
    plan = listing.plan or NO_LEVERS
    expected = plan.boosted(tuple(ids), estimates)
    scores = policy.explorer.scores(expected, widths)
    left = np.array([each not in withheld or each == article for each in ids])
    pin = _pinned(decision, plan, ids)
    chances = _chances(policy, expected, widths, left, pin)
    by = expected if bucket == DEPLOYMENT else scores
    order = [int(place) for place in np.argsort(-by, kind="stable")]
    likeliest = next(place for place in order if left[place]) if pin is None else pin
    first = likeliest if article is None else ids.index(article)
    second = next((place for place in order if place != first), None)

    def candidate(place: int) -> ScoredArticle:
        return _candidate(
            *(
                pool,
                ids[place],
                max(float(estimates[place]), least),
                float((scores - expected)[place]),
            ),
            *(chances[:, place], plan.factors.get(ids[place], 1.0), not left[place]),
        )

    listed = tuple(candidate(place) for place in order[:LISTED])
    chosen = candidate(first)
    if second is None:
        return Explanation(BUCKETS[bucket], chosen, None, 0.0, (), 0.0, listed, len(ids))
    lead = float(estimates[first] - estimates[second])
    reasons = _reasons(pool, user, [ids[first], ids[second]], names, lead)
    rest = lead - sum(reason.adds for reason in reasons)
    lever: Lever | None = None if pin is None or bucket == UNIFORM else "pin"
    if pin is None and bucket != UNIFORM:
        plain = estimates if bucket == DEPLOYMENT else policy.explorer.scores(estimates, widths)
        lever = _decisive(first, order[0], int(np.argmax(np.where(left, plain, -np.inf))), left)
    return Explanation(
        *(BUCKETS[bucket], chosen, candidate(second), lead, reasons, rest, listed, len(ids)), lever
    )


def _pinned(decision: ExplainedDecision, plan: LeverPlan, ids: list[str]) -> int | None:
    """The place of the article that is pinned to the story's slot."""
    article = plan.pins.get(STORY) if decision.pinned is None else None
    if decision.pinned:
        article = decision.article
    return ids.index(article) if article in ids else None


def _decisive(first: int, best: int, unboosted: int, left: Bools) -> Lever | None:
    """The lever, if any, without which another article would have come first.

    >>> _decisive(0, 0, 1, np.array([True, True]))
    'boost'
    >>> _decisive(1, 0, 1, np.array([False, True]))
    'limit'
    """
    if first == best != unboosted:
        return "boost"
    return None if left[best] else "limit"


def _chances(
    policy: Policy, expected: Floats, widths: Floats, left: Bools, pin: int | None
) -> Floats:
    """(buckets, articles), of those that are left."""
    chances = np.zeros((len(BUCKETS), len(expected)))
    chances[UNIFORM, left] = 1 / left.sum()
    if pin is not None:
        chances[[LEARNING, DEPLOYMENT], pin] = 1.0
        return chances
    chances[LEARNING, left] = policy.explorer.probabilities(
        expected[left], widths[left], policy.trials
    )
    best = left & (expected == expected[left].max())
    chances[DEPLOYMENT] = best / best.sum()
    return chances


def _candidate(
    pool: Pool,
    article: str,
    estimate: float,
    bonus: float,
    chances: Floats,
    boost: float,
    held: bool,
) -> ScoredArticle:
    facts = pool.articles[article].facts
    return ScoredArticle(
        *(article, facts.title or article, facts.picture, estimate),
        bonus=bonus if isfinite(bonus) else None,
        chances={name: float(chances[place]) for place, name in enumerate(BUCKETS)},
        boost=boost,
        held=held,
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
