"""Which runs a study makes: a grid on the tuning log, then the best of it on the evaluation log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from topstory.evaluation import Outcome, Run, Tuning, cost, grid_runs, tuning_of
from topstory.evaluation.tuning import repeats_at
from topstory.policies import REGISTRY
from topstory.studies.settings import REFERENCES, StudySettings

TUNING, EVALUATION = "tuning", "evaluation"


def tuning_runs(settings: StudySettings) -> list[Run]:
    """A run for every policy, size, parameter and seed; then the references.

    >>> len(tuning_runs(StudySettings(policies=("ucb",), sizes=(1.0,))))
    10
    """
    runs = [run for policy in settings.policies for run in _grid(settings, policy, None)]
    runs += [
        run
        for policy in settings.policies
        if settings.ridges and has_ridge(policy)
        for run in _grid(settings, policy, settings.ridges)
    ]
    return runs + reference_runs(settings)


def check_parameters(settings: StudySettings) -> None:
    """Raise if a parameter is not valid, before a folder or a log is made."""
    for run in tuning_runs(settings):
        REGISTRY[run.policy].explorer.make(dict(run.parameters))


def reference_runs(settings: StudySettings) -> list[Run]:
    """`random` and `omniscient`, which do not learn and have no parameter."""
    return [Run.of(name, {}, 1.0, settings.seed) for name in REFERENCES]


def _grid(settings: StudySettings, policy: str, ridges: Sequence[float] | None) -> list[Run]:
    return grid_runs(
        policy,
        settings.grid(policy),
        ridges,
        settings.sizes,
        settings.repeats,
        settings.seed,
    )


def tunings(settings: StudySettings, outcomes: Mapping[Run, Outcome]) -> dict[str, Tuning]:
    """The tuning curves of each policy, with the paper's ridge of 1."""
    return {
        policy: tuning_of(
            policy, settings.tune_on, [outcomes[run] for run in _grid(settings, policy, None)]
        )
        for policy in settings.policies
    }


def ridge_tunings(settings: StudySettings, outcomes: Mapping[Run, Outcome]) -> dict[str, Tuning]:
    """The same over all ridges, 1 included; empty unless ridges are searched."""
    return {
        policy: tuning_of(
            policy,
            settings.tune_on,
            [
                outcomes[run]
                for run in _grid(settings, policy, None) + _grid(settings, policy, settings.ridges)
            ],
        )
        for policy in settings.policies
        if settings.ridges and has_ridge(policy)
    }


@dataclass(frozen=True)
class EvaluationCell:
    """A cell of Table 1: one policy at one size on the evaluation log, with a run for each seed."""

    policy: str
    size: float
    runs: tuple[Run, ...]


def evaluation_cells(
    settings: StudySettings, tunings: Mapping[str, Tuning]
) -> list[EvaluationCell]:
    """What is run on the evaluation log: every policy and size, with its tuned parameter."""
    return [
        EvaluationCell(
            policy,
            size,
            tuple(
                Run.of(policy, tuning.best(size).parameters, size, settings.seed + repeat)
                for repeat in range(repeats_at(size, settings.repeats))
            ),
        )
        for policy, tuning in tunings.items()
        for size in settings.sizes
    ]


def total_cost(settings: StudySettings, tuning_events: int, evaluation_events: int) -> float:
    """The work of a whole study, in events of a simple policy; known before it starts."""
    seeds = sum(repeats_at(size, settings.repeats) for size in settings.sizes)
    on_tuning = sum(cost(run) for run in tuning_runs(settings))
    on_evaluation = sum(
        seeds
        * cost(Run.of(policy, {}, 1.0, 0))
        * (2 if settings.ridges and has_ridge(policy) else 1)
        for policy in settings.policies
    ) + sum(cost(run) for run in reference_runs(settings))
    return on_tuning * tuning_events + on_evaluation * evaluation_events


def has_ridge(policy: str) -> bool:
    """Whether the model of a policy has a ridge, the weight of its prior."""
    return "ridge" in REGISTRY[policy].model_parameters
