"""Judging by a log's folder: workers read its parts, and only sums leave them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from topstory.engines import Engine
from topstory.evaluation.blocks import Blocks
from topstory.evaluation.off_policy.candidates import (
    Given,
    Progress,
    chosen,
    learners,
    share_of_events,
    weights_for,
)
from topstory.evaluation.off_policy.estimators.dr import Dr
from topstory.evaluation.off_policy.estimators.fixed import FixedEstimator
from topstory.evaluation.off_policy.estimators.registry import ESTIMATORS
from topstory.evaluation.off_policy.estimators.weighted_events import Estimator
from topstory.evaluation.off_policy.folders.payoff_sums import learned_payoffs
from topstory.evaluation.off_policy.folders.summed_judge import SumsJoin, Task, judge_part
from topstory.evaluation.off_policy.folders.survey import surveyed
from topstory.evaluation.off_policy.judging import Judge, judged_width
from topstory.evaluation.training import train_first
from topstory.events import EventLog
from topstory.events.folder.parts import LogFolder

COPIES = 4  # of the columns of a part, in a worker's memory at once


def check_summable(estimator: Estimator) -> None:
    """ValueError for an estimator that needs all events at once.

    >>> check_summable(ESTIMATORS["dr"])
    """
    if not isinstance(estimator, FixedEstimator):
        fit = ", ".join(n for n, each in ESTIMATORS.items() if isinstance(each, FixedEstimator))
        raise ValueError(
            f"{estimator.name} chooses its number by all weights at once, so it needs the whole "
            f"log in one memory: read the log (in Python EventLog.read; leave out --engine), or "
            f"take one of {fit}"
        )


def judge_folder(
    given: Mapping[str, Given],
    folder: LogFolder,
    engine: Engine,
    estimator: Estimator,
    greedy: bool,
    train_share: float,
    seed: int,
    parameters: Mapping[str, Any],
    progress: Progress | None,
    warn: Callable[[EventLog], None],
) -> tuple[Judge, int, int, float]:
    """The judge; how many events judged, how many taught before; and the seconds of judging."""
    check_summable(estimator)
    contents = folder.contents
    made, learning = learners(given, seed, parameters)
    cut = share_of_events(contents.events, train_share) if learning else 0
    for name in learning:
        weights = weights_for(made[name], contents.recorded_propensity)
        made[name] = train_first(made[name], folder, cut, weights, engine, progress)
    policies = chosen(given, made)
    estimators = (estimator, Dr()) if estimator.biased else (estimator,)
    own = 8 * COPIES * judged_width(len(policies))
    parts = folder.parts(cut, contents.events, beside=own)
    work, done = (contents.events - cut) * (3 if estimator.models_payoffs else 2), 0

    def follow(events: int) -> None:
        nonlocal done
        done += events
        if progress is not None:
            progress("judging", done, work)

    survey = surveyed(folder, parts, engine, follow)
    warn(survey.tested)
    payoffs = None
    if estimator.models_payoffs:
        payoffs = learned_payoffs(folder, survey.parts, engine, follow)
    blocks = Blocks.over(contents.events - cut, survey.ends)
    task = Task(folder, policies, estimators, greedy, blocks, cut, survey.payoff, payoffs)
    joined = SumsJoin(task, survey, contents.recorded_propensity, contents.propensity_estimate)
    began = perf_counter()
    for judged, sums in zip(survey.parts, engine.map(judge_part, survey.parts, task), strict=True):
        joined.add(sums)
        follow(judged.part.events)
    return joined.judge(), contents.events - cut, cut, perf_counter() - began
