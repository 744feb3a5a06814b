"""Two policies side by side, on the last decisions that a journal has.

Agreement is how often their best estimates name the same article. The value is what the deployment
bucket would earn under each: self-normalised inverse propensity scoring (SNIPS), with the
propensities that were recorded over the traffic mix.
"""

from __future__ import annotations

import numpy as np

from topstory.explorers import Greedy
from topstory.kernels.compilation import Floats
from topstory.policies import Policy
from topstory.serving.api.messages import OffPolicyValue, PolicyComparison
from topstory.serving.journal.journal import Journal
from topstory.serving.state.pool import FOREVER, context
from topstory.serving.upkeep.journal_export import PastDecisions

AGREED_ON = 1_000  # decisions
VALUED_ON = 10_000  # decisions
RECORDS_PER_DECISION = 4  # at most, usually: payoffs, edits, and decisions of other pools


def compare(
    journal: Journal, pool: str, current: Policy, candidate: Policy, articles: frozenset[str]
) -> PolicyComparison:
    """Compare policies that know these articles; the journal's service may be running.

    Decisions that could have shown other articles, which were removed since, are left out: neither
    policy knows them any more. The payoff of the last decisions may still come; they count as 0.
    """
    last, _ = journal.last()
    after = max(0, last - RECORDS_PER_DECISION * VALUED_ON)
    past = PastDecisions(journal, pool, "all", FOREVER, FOREVER, after)
    found = list(past.events())[-VALUED_ON:]
    events = [
        event
        for event in found
        if event.shown == event.decided.article and articles.issuperset(event.pool)
    ]
    ours, theirs, agreed = [], [], []
    for event in events:
        user, place = context(event.decided.user), event.pool.index(event.shown)
        one, other = (_deployed(policy, user, event.pool) for policy in (current, candidate))
        agreed.append(float(one @ other))
        ours.append(one[place] / event.decided.propensity)
        theirs.append(other[place] / event.decided.propensity)
    payoffs = np.array([event.payoff for event in events])
    recent = agreed[-AGREED_ON:]
    return PolicyComparison(
        decisions=len(events),
        left_out=len(found) - len(events),
        agreement=float(np.mean(recent)) if recent else None,
        agreed_on=len(recent),
        current=snips(np.array(ours), payoffs),
        candidate=snips(np.array(theirs), payoffs),
    )


def _deployed(policy: Policy, user: Floats, pool: tuple[str, ...]) -> Floats:
    """(len(pool),) how likely the deployment bucket is to show each article."""
    estimates, widths = policy.estimates(user, pool), policy.widths(user, pool)
    return Greedy().probabilities(estimates, widths, policy.trials)


def snips(weights: Floats, payoffs: Floats) -> OffPolicyValue | None:
    """Σwr / Σw, its standard error √Σw²(r − V)² / Σw, and how many events they amount to.

    None if no event has a weight: the policies never agree with what was shown.

    >>> snips(np.array([2.0, 0.0, 2.0]), np.array([1.0, 1.0, 0.0]))
    OffPolicyValue(value=0.5, standard_error=0.353..., effective_events=2.0)
    """
    total = float(weights.sum())
    if total <= 0.0:
        return None
    value = float(weights @ payoffs) / total
    error = float(np.sqrt((weights**2 * (payoffs - value) ** 2).sum())) / total
    return OffPolicyValue(value, error, total**2 / float((weights**2).sum()))
