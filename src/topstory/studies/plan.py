"""Which runs a study makes: on the tuning log, then with what they chose on the evaluation log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from topstory.evaluation import Outcome, Run, Tuning, cost, grid_runs, tuning_of
from topstory.evaluation.tuning import repeats_at
from topstory.policies import REGISTRY
from topstory.studies.settings import REFERENCES, Settings

TUNING, EVALUATION = "tuning", "evaluation"


def tuning_runs(settings: Settings) -> list[Run]:
    """Every policy, size, parameter and seed; then the references.

    >>> len(tuning_runs(Settings(policies=("ucb",), sizes=(1.0,))))
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


def check(settings: Settings) -> None:
    """Refuse what no run can be made with, before there is a folder or a log."""
    for run in tuning_runs(settings):
        REGISTRY[run.policy].explorer.make(dict(run.parameters))


def reference_runs(settings: Settings) -> list[Run]:
    """`random` and `omniscient`, which have nothing to tune and do not learn."""
    return [Run.of(name, {}, 1.0, settings.seed) for name in REFERENCES]


def _grid(settings: Settings, policy: str, ridges: Sequence[float] | None) -> list[Run]:
    return grid_runs(
        policy,
        settings.grid(policy),
        ridges,
        settings.sizes,
        settings.repeats,
        settings.seed,
    )


def tunings(settings: Settings, outcomes: Mapping[Run, Outcome]) -> dict[str, Tuning]:
    """Each policy's tuning curves, with the paper's ridge of 1."""
    return {
        policy: tuning_of(
            policy, settings.tune_on, [outcomes[run] for run in _grid(settings, policy, None)]
        )
        for policy in settings.policies
    }


def ridge_tunings(settings: Settings, outcomes: Mapping[Run, Outcome]) -> dict[str, Tuning]:
    """The same over the ridges too, that of 1 included; nothing unless they were searched."""
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
class Entry:
    """One policy at one size on the evaluation log: a cell of Table 1, a run for each seed."""

    policy: str
    size: float
    runs: tuple[Run, ...]


def entries(settings: Settings, found: Mapping[str, Tuning]) -> list[Entry]:
    """What is run on the evaluation log: every policy and size, with its tuned parameter."""
    return [
        Entry(
            policy,
            size,
            tuple(
                Run.of(policy, tuning.best(size).parameters, size, settings.seed + repeat)
                for repeat in range(repeats_at(size, settings.repeats))
            ),
        )
        for policy, tuning in found.items()
        for size in settings.sizes
    ]


def whole_cost(settings: Settings, tuning_events: int, evaluation_events: int) -> float:
    """How much work a study is, before it has begun: in events of a simple policy."""
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
    """Whether the policy's model has a prior's weight to search."""
    return "ridge" in REGISTRY[policy].model_parameters
