"""The policies of a study as they were evaluated, and how much more one earned than another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from topstory.evaluation import Bucket, Outcome, Tuning, mean_lift, mean_relative_ctr
from topstory.evaluation.run import BUCKETS
from topstory.policies import REGISTRY
from topstory.report import Number
from topstory.studies.plan import evaluation_cells
from topstory.studies.report.estimates import number_of

if TYPE_CHECKING:
    from topstory.studies.result import Study

DEPLOYMENT, LEARNING = BUCKETS


@dataclass(frozen=True, eq=False)
class Candidate:
    """A policy at one data size, with parameters chosen on the tuning log; a run for each seed.

    Each number is computed once, however many tables and sentences show it.
    """

    policy: str
    parameters: dict[str, float]
    outcomes: tuple[Outcome, ...] = field(repr=False)

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

    def ctr(self, bucket: str = DEPLOYMENT) -> Number:
        """The CTR relative to random's."""
        return self._ctrs[bucket]

    def over(self, other: Candidate, bucket: str = DEPLOYMENT) -> Number:
        """The lift over another candidate, seed by seed on the same log."""
        key = (other, bucket)
        if key not in self._lifts:
            self._lifts[key] = number_of(mean_lift(self.buckets[bucket], other.buckets[bucket]))
        return self._lifts[key]

    @cached_property
    def _ctrs(self) -> dict[str, Number]:
        return {name: number_of(mean_relative_ctr(each)) for name, each in self.buckets.items()}

    @cached_property
    def _lifts(self) -> dict[tuple[Candidate, str], Number]:
        return {}


@dataclass(frozen=True)
class Candidates:
    """Every policy at every data size."""

    fixed: Mapping[tuple[str, float], Candidate]  # with the paper's ridge of 1
    searched: Mapping[tuple[str, float], Candidate]  # with the ridge that was tuned too
    reference: Outcome  # omniscient, on the evaluation log

    @classmethod
    def of(cls, study: Study) -> Candidates:
        """All of a study."""

        def tuned(tunings: Mapping[str, Tuning]) -> dict[tuple[str, float], Candidate]:
            return {
                (cell.policy, cell.size): Candidate(
                    cell.policy,
                    dict(tunings[cell.policy].best(cell.size).parameters),
                    tuple(study.evaluated[run] for run in cell.runs),
                )
                for cell in evaluation_cells(study.settings, tunings)
            }

        return cls(tuned(study.tunings), tuned(study.ridge_tunings), study.reference("omniscient"))

    def at(self, size: float) -> list[Candidate]:
        """Every policy with the paper's ridge, then those for which another ridge was chosen."""
        fixed = [each for (_, at), each in self.fixed.items() if at == size]
        searched = [each for (_, at), each in self.searched.items() if at == size]
        return fixed + [each for each in searched if each.parameters.get("ridge", 1.0) != 1.0]

    def omniscient(self, beside: Candidate) -> Candidate:
        """Omniscient does not depend on the seed: the same run stands beside each seed."""
        return Candidate("omniscient", {}, (self.reference,) * len(beside.outcomes))


def best(among: Sequence[Candidate]) -> Candidate:
    """The one whose deployment bucket earned most."""
    return max(among, key=lambda each: value(each.ctr()))


def value(number: Number) -> float:
    """The value for comparisons: an unknown one is below everything."""
    return float("-inf") if number.value is None else number.value


def significant(lift: Number) -> bool:
    """Whether the 95 % interval of a lift is entirely above 0."""
    return lift.low is not None and lift.low > 0
