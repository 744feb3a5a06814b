"""The policies of a study as they were evaluated, and how much more one earned than another.

All differences that the report speaks of are compared at once, so that in 95 % of studies
everything that is called sure is true, however many policies and sizes there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from statistics import mean
from typing import TYPE_CHECKING

from topstory.evaluation import Bucket, Outcome, mean_relative_ctr
from topstory.evaluation.comparison import BASELINE
from topstory.evaluation.exploration import ExplorationCost, exploration_cost
from topstory.evaluation.intervals import Interval
from topstory.evaluation.replays.run import BUCKETS
from topstory.evaluation.uncertainty.paths import path_ends
from topstory.evaluation.uncertainty.run_errors import RANDOM
from topstory.evaluation.uncertainty.simultaneous import Claim, simultaneous_lifts
from topstory.evaluation.uncertainty.winner import shrunk_relative_ctrs
from topstory.kernels.scans.replay import PAYOFF, TRIALS
from topstory.policies.registry import EXPLORERS, REGISTRY
from topstory.report import Number
from topstory.report.records import finite
from topstory.studies.plan import evaluation_cells, total_buckets
from topstory.studies.report.days import day_ctrs
from topstory.studies.report.estimates import number_of

if TYPE_CHECKING:
    from topstory.studies.result import Study

DEPLOYMENT, LEARNING = BUCKETS
OMNISCIENT = "omniscient"

Key = tuple[str, float, str]  # policy, size, bucket
Pair = tuple[Key, Key | None]
Claims = Mapping[Pair, Claim]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A policy at one data size, with parameters chosen on the tuning log; a run for each seed.

    Each number is computed once, however many tables and sentences show it.
    """

    policy: str
    size: float
    parameters: dict[str, float]
    outcomes: tuple[Outcome, ...] = field(repr=False)
    claims: Claims = field(repr=False)  # of all candidates, compared at once
    learning_share: float  # of the traffic
    at_edge: tuple[str, ...] = ()  # parameters at the edge of what was tried

    @property
    def name(self) -> str:
        """The paper's name."""
        return REGISTRY[self.policy].paper

    @property
    def contextual(self) -> bool:
        """Whether it uses features of the user."""
        return REGISTRY[self.policy].contextual

    @cached_property
    def buckets(self) -> dict[str, list[Bucket]]:
        """Each bucket of each run."""
        return {name: [outcome.bucket(name) for outcome in self.outcomes] for name in BUCKETS}

    def key(self, bucket: str) -> Key:
        """Its name among the claims."""
        return (self.policy, self.size, bucket)

    def ctr(self, bucket: str = DEPLOYMENT) -> Number:
        """The CTR relative to random's."""
        return self._ctrs[bucket]

    def truth(self, bucket: str = DEPLOYMENT) -> float | None:
        """The true relative CTR, mean over the runs; None unless a simulator knows it."""
        known = [None if o.truth is None else o.truth[bucket] for o in self.outcomes]
        return None if None in known else mean(value for value in known if value is not None)

    def over(self, other: Candidate, bucket: str = DEPLOYMENT) -> Number:
        """The lift over another candidate, seed by seed on the same log."""
        ours, theirs = self.key(bucket), other.key(bucket)
        if (ours, theirs) in self.claims:
            return lift_of(self.claims[ours, theirs])
        return lift_of(_reversed(self.claims[theirs, ours]))

    @property
    def beats_random(self) -> bool:
        """Whether its deployment bucket surely earns more than random articles."""
        claim = self.claims[self.key(DEPLOYMENT), RANDOM]
        return claim.sure and claim.value > 0

    @property
    def random_rate(self) -> float:
        """What random articles pay for each visit: the log's own mean; 0 without visits."""
        sums = self.buckets[DEPLOYMENT][0].log_sums
        trials = float(sums[:, TRIALS].sum())
        return float(sums[:, PAYOFF].sum()) / trials if trials else 0.0

    @property
    def binary(self) -> bool:
        """Whether every payoff is 0 or 1: a click."""
        return self.buckets[DEPLOYMENT][0].binary

    @cached_property
    def total(self) -> Number:
        """The relative CTR of both buckets together, at the site's own split of the traffic."""
        return number_of(mean_relative_ctr(total_buckets(self.outcomes, self.learning_share)))

    @cached_property
    def exploration(self) -> ExplorationCost:
        """What exploring costs at that split."""
        return exploration_cost(
            self.buckets[DEPLOYMENT], self.buckets[LEARNING], self.learning_share
        )

    @cached_property
    def days(self) -> tuple[tuple[str, float], ...]:
        """The deployment bucket's relative CTR on each day of the log, over all seeds."""
        return day_ctrs(self.buckets[DEPLOYMENT])

    @cached_property
    def path_ends(self) -> Interval | None:
        """The deployment CTR of its lowest and its highest path, if they disagree."""
        return path_ends(self.buckets[DEPLOYMENT])

    @cached_property
    def _ctrs(self) -> dict[str, Number]:
        return {name: number_of(mean_relative_ctr(each)) for name, each in self.buckets.items()}


@dataclass(frozen=True)
class Candidates:
    """Every policy at every data size."""

    tuned: Mapping[tuple[str, float], Candidate]  # by policy and size
    reference: Outcome  # omniscient, on the evaluation log

    @classmethod
    def of(cls, study: Study) -> Candidates:
        """All of a study."""
        cells = evaluation_cells(study.settings, study.recommended)
        outcomes = {
            (cell.policy, cell.size): tuple(study.evaluated[run] for run in cell.runs)
            for cell in cells
        }
        reference = study.reference(OMNISCIENT)
        most = max(study.settings.sizes)
        outcomes[OMNISCIENT, most] = (reference,) * study.settings.repeats
        runs = {
            (policy, size, name): [outcome.bucket(name) for outcome in found]
            for (policy, size), found in outcomes.items()
            for name in BUCKETS
        }
        claims = claims_of(runs, study.settings.policies, study.settings.sizes)
        share = study.settings.learning_share
        return cls(
            {
                (cell.policy, cell.size): Candidate(
                    cell.policy,
                    cell.size,
                    dict(cell.parameters),
                    outcomes[cell.policy, cell.size],
                    claims,
                    share,
                    study.recommended[cell.policy, cell.size].at_edge,
                )
                for cell in cells
            },
            reference,
        )

    def at(self, size: float) -> list[Candidate]:
        """Every policy at one data size."""
        return [each for (_, at), each in self.tuned.items() if at == size]

    def omniscient(self, beside: Candidate) -> Candidate:
        """Omniscient does not depend on the seed: the same run stands beside each seed."""
        outcomes = (self.reference,) * len(beside.outcomes)
        return Candidate(
            OMNISCIENT, beside.size, {}, outcomes, beside.claims, beside.learning_share
        )

    def advised(self) -> Candidate:
        """The one to run: of those that may be the best with all data, the best over all sizes.

        What earns nearly as much with all data may earn far less with little. Every site has new
        articles, about which it has little.
        """
        all_data = self.at(max(size for _, size in self.tuned))
        top = max(all_data, key=_total)
        rivals = [each for each in all_data if each is top or not significant(top.over(each))]
        return max(rivals, key=lambda each: (self._over_sizes(each.policy), _total(each)))

    def _over_sizes(self, policy: str) -> float:
        """The mean logarithm of its total over the data sizes."""
        totals = [_total(each) for (name, _), each in self.tuned.items() if name == policy]
        return mean(math.log(total) if total > 0 else -math.inf for total in totals)


def without_luck(among: Sequence[Candidate]) -> dict[Candidate, Number]:
    """The deployment CTR of each, with the luck of being the best or the worst taken off."""
    buckets = {each: each.buckets[DEPLOYMENT] for each in among}
    return {each: number_of(found) for each, found in shrunk_relative_ctrs(buckets).items()}


def claims_of(
    runs: Mapping[Key, Sequence[Bucket]], policies: Sequence[str], sizes: Sequence[float]
) -> Claims:
    """All differences, each data size as a family: the luck of the path grows with less data."""
    claims: dict[Pair, Claim] = {}
    for size in sizes:
        pairs = [pair for pair in compared(policies, sizes) if pair[0][1] == size]
        own = {key: buckets for key, buckets in runs.items() if key[1] == size}
        claims |= simultaneous_lifts(own, pairs, families=len(sizes))
    return claims


def compared(policies: Sequence[str], sizes: Sequence[float]) -> list[Pair]:
    """All pairs whose difference the report shows or speaks of.

    >>> len(compared(["egreedy", "ucb"], [1.0]))
    4
    """
    most = max(sizes)
    pairs: list[Pair] = [
        ((policy, size, bucket), (BASELINE, size, bucket))
        for size in sizes
        for bucket in BUCKETS
        for policy in policies
        if policy != BASELINE
    ]
    pairs += [
        ((one, most, DEPLOYMENT), (other, most, DEPLOYMENT))
        for one, other in combinations([p for p in policies if p != BASELINE], 2)
    ]
    pairs += [((policy, most, DEPLOYMENT), RANDOM) for policy in policies]
    pairs += [
        ((policy, most, DEPLOYMENT), (OMNISCIENT, most, DEPLOYMENT))
        for policy in policies
        if REGISTRY[policy].contextual
    ]
    pairs += [
        ((guided, most, LEARNING), (plain, most, LEARNING))
        for guided, plain in explorer_pairs(policies)
        if plain != BASELINE
    ]
    return pairs


def explorer_pairs(policies: Sequence[str]) -> list[tuple[str, str]]:
    """The same model with an upper confidence bound, and with ε-greedy.

    >>> explorer_pairs(["egreedy", "ucb", "ucb-seg"])
    [('ucb', 'egreedy')]
    """
    plain = [name for name in policies if not REGISTRY[name].from_prior]
    by = {(REGISTRY[name].model.name, REGISTRY[name].explorer): name for name in plain}
    bound, greedy = EXPLORERS["upper-confidence"], EXPLORERS["epsilon-greedy"]
    return [
        (name, by[model, greedy])
        for (model, explorer), name in by.items()
        if explorer is bound and (model, greedy) in by
    ]


def lift_of(claim: Claim) -> Number:
    """A claim as a number of the report."""
    low, high = claim.interval
    return Number(finite(claim.value), finite(low), finite(high), claim.sure)


def _reversed(claim: Claim) -> Claim:
    """How much less: of the other one over this one."""
    low, high = (1 / (1 + end) - 1 if end != -1 else math.inf for end in claim.interval)
    value = 1 / (1 + claim.value) - 1 if claim.value > -1 else math.inf
    return Claim(value, type(claim.interval)(high, low), claim.p_value)


def best(among: Sequence[Candidate]) -> Candidate:
    """The one whose deployment bucket earned most."""
    return max(among, key=lambda each: value(each.ctr()))


def value(number: Number) -> float:
    """The value for comparisons: an unknown one is below everything."""
    return float("-inf") if number.value is None else number.value


def significant(lift: Number) -> bool:
    """Whether a lift is surely above 0."""
    return bool(lift.sure) and value(lift) > 0


def _total(each: Candidate) -> float:
    return 0.0 if each.total.value is None else each.total.value
