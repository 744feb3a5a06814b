"""A judge whose sums come from the parts of a log, each summed by a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from topstory.evaluation.blocks import Blocks
from topstory.evaluation.off_policy.estimators.dr import Dr
from topstory.evaluation.off_policy.estimators.weighted_events import Estimator, WeightedEvents
from topstory.evaluation.off_policy.folders.survey import JudgedPart, Survey, visitors_of
from topstory.evaluation.off_policy.judging import (
    Judge,
    WeightSizes,
    judged_columns,
    judged_width,
)
from topstory.evaluation.off_policy.weighting.payoff_model import PayoffModel, folds_of
from topstory.evaluation.off_policy.weighting.targets import FixedPolicy, target_of
from topstory.evaluation.off_policy.weighting.weights import weighted
from topstory.evaluation.uncertainty.cluster_parts import ClusterJoin, ClusterRun, part_runs
from topstory.evaluation.uncertainty.clusters import ClusteredSums
from topstory.events.folder.parts import LogFolder
from topstory.kernels.compilation import Floats
from topstory.policies import Policy

# Of Σ aⁱ bʲ: what Σ(a − δb)² and Σ(a − δb)⁴ are made of.
SECOND = ((2, 0, 1.0), (1, 1, -2.0), (0, 2, 1.0))
FOURTH = ((4, 0, 1.0), (3, 1, -4.0), (2, 2, 6.0), (1, 3, -4.0), (0, 4, 1.0))


@dataclass(frozen=True)
class Task:
    """What every worker needs to judge a part."""

    folder: LogFolder
    policies: Mapping[str, Policy | FixedPolicy]
    estimators: tuple[Estimator, ...]  # each for all policies
    greedy: bool
    blocks: Blocks
    start: int  # of the events judged
    near: float  # a value near to all: errors are summed as differences from it
    payoffs: Sequence[Policy] | None  # models of payoffs, if estimators need them


class PartSums(NamedTuple):
    """What one part adds."""

    runs: list[tuple[ClusterRun, ClusterRun]]  # for each estimator
    moments: list[dict[str, Floats]]  # for each estimator, of each policy
    sizes: dict[str, WeightSizes]


def judge_part(judged: JudgedPart, task: Task) -> PartSums:
    """Read a part, and sum it."""
    part = judged.part
    log = task.folder.read(part)
    visitors, before = visitors_of(log, judged), part.start - task.start
    payoffs = None
    if task.payoffs is not None:
        payoffs = PayoffModel(log, [each.copy() for each in task.payoffs], folds_of(log, before))
    events = {
        name: weighted(log, target_of(policy, log, task.greedy), payoffs)
        for name, policy in task.policies.items()
    }
    block = task.blocks.numbers(log, 0, len(log), before)
    runs, moments = [], []
    for estimator in task.estimators:
        columns = judged_columns(events, dict.fromkeys(events, estimator))
        runs.append(part_runs(block, visitors, columns))
        moments.append({name: _moments(estimator, own, task.near) for name, own in events.items()})
    sizes = {name: WeightSizes.of(own.weight) for name, own in events.items()}
    return PartSums(runs, moments, sizes)


def _moments(estimator: Estimator, events: WeightedEvents, near: float) -> Floats:
    terms = estimator.terms(events)
    a, b = terms.numerator - near * terms.denominator, terms.denominator
    return np.array([float((a**i * b**j).sum()) for i, j, _ in (*SECOND, *FOURTH)])


class SumsJoin:
    """Adds up what the parts found, in their order."""

    def __init__(self, task: Task, survey: Survey, recorded: bool, estimate: str | None) -> None:
        self._task, self._survey = task, survey
        self._recorded, self._estimate = recorded, estimate
        names, width = list(task.policies), judged_width(len(task.policies))
        self._joins = [ClusterJoin(task.blocks, width) for _ in task.estimators]
        count = len(SECOND) + len(FOURTH)
        self._moments = [{name: np.zeros(count) for name in names} for _ in task.estimators]
        self._sizes = dict.fromkeys(names, WeightSizes(0.0, 0.0))

    def add(self, part: PartSums) -> None:
        """The next part."""
        for join, run, whole, own in zip(
            self._joins, part.runs, self._moments, part.moments, strict=True
        ):
            join.add(*run)
            for name, values in own.items():
                whole[name] = whole[name] + values
        for name, size in part.sizes.items():
            known = self._sizes[name]
            self._sizes[name] = WeightSizes(
                known.squares + size.squares, max(known.largest, size.largest)
            )

    def judge(self, place: int = 0) -> SummedJudge:
        """The judge by one of the estimators."""
        return SummedJudge(self, place)


class SummedJudge(Judge):
    """Of a log that nobody has in memory."""

    def __init__(self, joined: SumsJoin, place: int) -> None:
        task = joined._task
        names = list(task.policies)
        super().__init__(names, dict.fromkeys(names, task.estimators[place]))
        self._joined, self._place = joined, place
        self.binary, self.recorded = joined._survey.binary, joined._recorded
        self.estimate = joined._estimate
        self.sums: ClusteredSums = joined._joins[place].sums()

    @cached_property
    def _unbiased(self) -> Judge:
        task = self._joined._task
        (place,) = (i for i, each in enumerate(task.estimators) if each.name == Dr.name)
        return self._joined.judge(place)

    def _sizes(self, name: str) -> WeightSizes:
        return self._joined._sizes[name]

    def _moments(self, name: str, value: float) -> tuple[float, float]:
        sums, apart = self._joined._moments[self._place][name], value - self._joined._task.near
        terms = [
            float(each) * factor * apart**j
            for each, (_, j, factor) in zip(sums, (*SECOND, *FOURTH), strict=True)
        ]
        return max(0.0, sum(terms[: len(SECOND)])), max(0.0, sum(terms[len(SECOND) :]))

    def _robust(self, name: str, baseline: str) -> float | None:
        return None  # it would take some hundred passes
