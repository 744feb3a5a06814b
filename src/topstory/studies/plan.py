"""Which runs a study makes: a grid to tune on, then what it recommends on the evaluation log."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from topstory.evaluation import Bucket, Outcome, Point, Run, Tuning, cost, grid_runs, tuning_of
from topstory.evaluation.exploration import total_bucket
from topstory.evaluation.replays.run import TOTAL
from topstory.evaluation.tuning.grids import has_ridge, next_value
from topstory.evaluation.tuning.recommendation import (
    PAPER_RIDGE,
    Recommendation,
    TriedPoint,
    recommend,
)
from topstory.evaluation.uncertainty.repeats import Estimate, mean_relative_ctr
from topstory.policies import REGISTRY
from topstory.studies.settings import REFERENCES, StudySettings

TUNING, EVALUATION = "tuning", "evaluation"
# All curves are read together, so that another value teaches as much as another seed.
TUNING_SEEDS = 1

Recommended = Mapping[tuple[str, float], Recommendation]  # by policy and size


def tuning_runs(settings: StudySettings) -> list[Run]:
    """A run for every policy, size and parameter; then the references.

    >>> len(tuning_runs(StudySettings(policies=("ucb",), sizes=(1.0,))))
    10
    """
    runs = [run for policy in settings.policies for run in _grid(settings, policy)]
    return runs + reference_runs(settings)


def check_parameters(settings: StudySettings) -> None:
    """Raise if a parameter is not valid, before a folder or a log is made."""
    for run in tuning_runs(settings):
        REGISTRY[run.policy].explorer.make(dict(run.parameters))


def reference_runs(settings: StudySettings) -> list[Run]:
    """`random` and `omniscient`, which do not learn and have no parameter."""
    return [Run.of(name, {}, 1.0, settings.seed) for name in REFERENCES]


def _grid(settings: StudySettings, policy: str) -> list[Run]:
    """Every value of its parameter; with the paper's ridge of 1 first, then with the others.

    A prior has a ridge of its own: the likeliest one of the exploration's articles. Where articles
    share what they learn, the largest of the others is tried too: what is likeliest for all
    articles may hold back the best ones.
    """
    searched: list[Sequence[float] | None] = [None]
    if settings.ridges and has_ridge(policy):
        searched.append(settings.ridges)
    elif settings.ridges and REGISTRY[policy].model.article_features:
        searched.append((max(settings.ridges),))
    return [
        run
        for ridges in searched
        for run in grid_runs(
            policy, settings.grid(policy), ridges, settings.sizes, TUNING_SEEDS, settings.seed
        )
    ]


def tunings(settings: StudySettings, outcomes: Mapping[Run, Outcome]) -> dict[str, Tuning]:
    """The tuning curves of each policy."""
    return {
        policy: tuning_of(
            policy,
            settings.tune_on,
            [outcome for run, outcome in outcomes.items() if run.policy == policy],
            scale=settings.scale,
        )
        for policy in settings.policies
    }


def recommended(settings: StudySettings, tunings: Mapping[str, Tuning]) -> Recommended:
    """The parameters of every policy and size, read from all curves together."""
    return recommend(
        [_tried(settings, point) for tuning in tunings.values() for point in tuning.points],
        settings.scale,
    )


def beyond_the_edge(
    settings: StudySettings, chosen: Recommended, tried: Iterable[Run]
) -> list[Run]:
    """Runs with more values of a parameter, where the recommended one is the last one tried.

    The other parameter keeps its recommended value, and is tried with those next to it. Values that
    were given are not added to.

    >>> settings = StudySettings(policies=("linucb-hybrid",), sizes=(1.0,), ridges=(10.0, 100.0))
    >>> best = Recommendation({"alpha": 0.4, "ridge": 100.0}, 1.5, at_edge=("ridge",))
    >>> runs = beyond_the_edge(settings, {("linucb-hybrid", 1.0): best}, tuning_runs(settings))
    >>> [dict(run.parameters) for run in runs]  # doctest: +NORMALIZE_WHITESPACE
    [{'alpha': 0.2, 'ridge': 1000.0}, {'alpha': 0.4, 'ridge': 1000.0},
     {'alpha': 0.6, 'ridge': 1000.0}]
    """
    points: dict[tuple[str, float], list[dict[str, float]]] = {}
    for run in tried:
        points.setdefault((run.policy, run.size), []).append(run.numbers)
    wider: list[Run] = []
    for (policy, size), best in chosen.items():
        if math.isnan(best.value):
            continue
        for name in best.at_edge:
            if name in settings.values or (name == "ridge" and not settings.ridges):
                continue
            values = [point.get(name, PAPER_RIDGE) for point in points[policy, size]]
            lower = best.parameters.get(name, PAPER_RIDGE) == min(values)
            beyond = next_value(policy, name, values, lower, settings.scale)
            if beyond is not None:
                wider += [
                    Run.of(policy, {**near, name: beyond}, size, settings.seed)
                    for near in _near(best.parameters, name, points[policy, size])
                ]
    return wider


def _near(
    best: Mapping[str, float], edge: str, points: Sequence[Mapping[str, float]]
) -> list[dict[str, float]]:
    """The best parameters but the one at the edge: with that, and with the values next to it."""
    others = [name for name in best if name != edge]
    if not others:
        return [{}]
    (other,) = others
    values = sorted({point[other] for point in points if other in point})
    place = values.index(best[other])
    return [{other: value} for value in values[max(place - 1, 0) : place + 2]]


def _tried(settings: StudySettings, point: Point) -> TriedPoint:
    if settings.tune_on == TOTAL:
        deciding = mean_relative_ctr(total_buckets(point.outcomes, settings.learning_share))
    else:
        deciding = point.learning if settings.tune_on == "learning" else point.deployment
    return TriedPoint(
        policy=point.policy,
        size=point.size,
        parameters=point.parameters,
        value=deciding.value,
        variance=_variance(deciding),
        learning=point.learning.value,
    )


def total_buckets(outcomes: Sequence[Outcome], learning_share: float) -> list[Bucket]:
    """Both buckets of each run together, at the site's own split of the traffic."""
    return [
        total_bucket(each.bucket("deployment"), each.bucket("learning"), learning_share)
        for each in outcomes
    ]


def _variance(estimate: Estimate) -> float:
    """Of the logarithm: an interval reaches about two standard deviations to each side."""
    low, high = estimate.interval
    if not (0 < low <= high < float("inf")):
        return float("nan")
    return ((high - low) / (4 * estimate.value)) ** 2


@dataclass(frozen=True)
class EvaluationCell:
    """A cell of Table 1: one policy at one size on the evaluation log, with a run for each seed."""

    policy: str
    size: float
    parameters: Mapping[str, float]
    runs: tuple[Run, ...]


def evaluation_cells(settings: StudySettings, chosen: Recommended) -> list[EvaluationCell]:
    """What is run on the evaluation log: every policy and size, with its recommended parameter."""
    return [
        EvaluationCell(
            policy,
            size,
            found.parameters,
            tuple(
                Run.of(policy, found.parameters, size, settings.seed + repeat)
                for repeat in range(settings.repeats)
            ),
        )
        for (policy, size), found in chosen.items()
    ]


def delayed_runs(settings: StudySettings, chosen: Recommended) -> list[Run]:
    """Every policy with its recommended parameters and payoffs that come late: all data, a seed.

    >>> best = {("ucb", 1.0): Recommendation({"alpha": 0.4}, 1.5, at_edge=())}
    >>> settings = StudySettings(policies=("ucb",), sizes=(1.0,), delays=(10.0, 60.0))
    >>> [run.delay for run in delayed_runs(settings, best)]
    [10.0, 60.0]
    """
    size = max(settings.sizes)
    return [
        Run.of(policy, chosen[policy, size].parameters, size, settings.seed, delay)
        for policy in settings.policies
        for delay in settings.delays
    ]


def total_cost(settings: StudySettings, tuning_events: int, evaluation_events: int) -> float:
    """The work of a whole study, in events of a simple policy; known before it starts."""
    seeds = settings.repeats * len(settings.sizes)
    on_tuning = sum(cost(run) for run in tuning_runs(settings))
    seeds += len(settings.delays)
    on_evaluation = sum(
        seeds * cost(Run.of(policy, {}, 1.0, 0)) for policy in settings.policies
    ) + sum(cost(run) for run in reference_runs(settings))
    return on_tuning * tuning_events + on_evaluation * evaluation_events
