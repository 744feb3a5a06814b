"""Who competes at one data size, and by how much one surely earns more than another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topstory.evaluation import Bucket, Outcome, mean_lift, mean_relative_ctr
from topstory.policies import REGISTRY
from topstory.report import Number
from topstory.studies.plan import entries
from topstory.studies.report.numbers import estimated

if TYPE_CHECKING:
    from topstory.studies.result import Study

DEPLOYMENT, LEARNING = "deployment", "learning"


@dataclass(frozen=True)
class Contender:
    """A policy with parameters chosen on the tuning log, as it was judged: a run for each seed."""

    policy: str
    parameters: dict[str, float]
    outcomes: tuple[Outcome, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """The paper's."""
        return REGISTRY[self.policy].paper

    @property
    def contextual(self) -> bool:
        """Whether it looks at the user."""
        return REGISTRY[self.policy].contextual

    def buckets(self, bucket: str) -> list[Bucket]:
        """One bucket of each run."""
        return [outcome.bucket(bucket) for outcome in self.outcomes]

    def ctr(self, bucket: str = DEPLOYMENT) -> Number:
        """Relative to random's."""
        return estimated(mean_relative_ctr(self.buckets(bucket)))

    def over(self, other: Contender, bucket: str = DEPLOYMENT) -> Number:
        """The lift over another, seed by seed on the same log."""
        return estimated(mean_lift(self.buckets(bucket), other.buckets(bucket)))


def contenders(study: Study, size: float) -> list[Contender]:
    """Every policy at that size with the paper's ridge; then those with another that was chosen."""
    fixed = [
        Contender(policy, dict(study.chosen(policy, size)), study.outcomes(policy, size))
        for policy in study.settings.policies
    ]
    searched = [
        Contender(
            entry.policy,
            dict(study.ridge_tunings[entry.policy].best(size).parameters),
            tuple(study.evaluated[run] for run in entry.runs),
        )
        for entry in entries(study.settings, study.ridge_tunings)
        if entry.size == size
    ]
    return fixed + [each for each in searched if each.parameters.get("ridge", 1.0) != 1.0]


def omniscient(study: Study, beside: Contender) -> Contender:
    """It has no luck of learning: the same run stands beside every seed of a contender."""
    run = study.reference("omniscient")
    return Contender("omniscient", {}, (run,) * len(beside.outcomes))


def best(among: Sequence[Contender]) -> Contender:
    """The one whose deployment bucket earned most."""
    return max(among, key=lambda each: value(each.ctr()))


def value(number: Number) -> float:
    """What is not known is below everything."""
    return float("-inf") if number.value is None else number.value


def surely(lift: Number) -> bool:
    """Whether the whole 95 % interval of a lift is above 0."""
    return lift.low is not None and lift.low > 0
