"""The paper's experiments, end to end (§5.5): tune every policy, then judge it on another log."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from topstory.engines import Engine
from topstory.engines import engine as named_engine
from topstory.evaluation import Outcome, Run, cost, play_all
from topstory.evaluation.warm_start import needs_offset
from topstory.events import EventLog
from topstory.studies.logs.simulated import SCALES, Simulated
from topstory.studies.logs.sources import Logs, OwnLogs, Source, check_explored
from topstory.studies.logs.summaries import called, summarise
from topstory.studies.logs.warnings import StudyWarning, cautions
from topstory.studies.plan import (
    EVALUATION,
    TUNING,
    check,
    entries,
    reference_runs,
    ridge_tunings,
    tuning_runs,
    tunings,
    whole_cost,
)
from topstory.studies.report.version import made_by
from topstory.studies.result import Study
from topstory.studies.run_log import Journal
from topstory.studies.settings import Settings, checked

Progress = Callable[[str, float, float], object]


def study(
    out: str | PathLike[str],
    *,
    scale: str = "demo",
    tuning: EventLog | None = None,
    evaluation: EventLog | None = None,
    exploration: EventLog | None = None,
    support: float | Mapping[str, float] | None = None,
    policies: Sequence[str] | None = None,
    sizes: Sequence[float] | None = None,
    epsilons: Sequence[float] | None = None,
    alphas: Sequence[float] | None = None,
    repeats: int | None = None,
    tune_on: str = "deployment",
    tune_ridge: bool = False,
    seed: int = 0,
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> Study:
    """Run the paper's whole evaluation, and record every run in a folder as it finishes.

    Called again on the same folder it goes on where it was, and repeats nothing. `Study.write`
    writes the tables, the figures and the report beside the records.

    Args:
        out: the folder.
        scale: how large the simulated logs are: `demo` (0.5 M events to tune on, 3 M to judge on)
            or `paper` (4.7 M and 36 M).
        tuning: your own log to choose parameters on, with `evaluation`, instead of simulated ones.
        evaluation: your own log to judge policies on.
        exploration: a log of random exploration that the warm policies' offsets are fitted on, and
            features if the logs are raw: with profiles, and contexts of the constant alone.
        support: of features learned from raw logs: the least share of users that must have a
            category, a number or numbers by field; by default the paper's 0.1, and 0.01 for
            simulated logs.
        policies: names of those to compare; by default all ten that learn.
        sizes: the shares of retained events to learn from; by default the paper's six.
        epsilons: values of ε to try.
        alphas: values of α to try.
        repeats: how many seeds to average; by default 1, and 3 at sizes of 5 % and below and
            everywhere in the demo.
        tune_on: the bucket whose CTR decides, `deployment` or `learning`.
        tune_ridge: search the ridge of linear models as well.
        seed: the first seed, and that of the simulated world.
        engine: `serial`, `local` (all cores), `ray`, or an engine.
        progress: called with (what is done, work done, work in all).

    Warns:
        StudyWarning: if the logs cannot show what is asked, such as what features are worth where
            contexts are the constant alone.
        NotUniformWarning: if a log's articles were not shown uniformly at random.

    >>> import tempfile
    >>> import numpy as np
    >>> import topstory as ts
    >>> random = np.random.default_rng(0)
    >>> shown = random.choice(["rain", "sun"], 4000)
    >>> clicked = random.random(4000) < np.where(shown == "sun", 0.2, 0.1)
    >>> log = ts.EventLog.from_arrays(
    ...     np.ones((4000, 1)), [["rain", "sun"]], np.zeros(4000, int), shown, clicked
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = ts.study(
    ...         folder, tuning=log[:2000], evaluation=log[2000:], policies=["egreedy"],
    ...         sizes=[1.0], epsilons=[0.1, 0.9], tune_on="learning",
    ...     )
    >>> found.chosen("egreedy")
    {'epsilon': 0.1}
    >>> found.table1().column_names[:3]
    ['policy', 'algorithm', 'size']
    """
    where = named_engine(engine)
    if repeats is None and tuning is None and scale in SCALES:
        repeats = SCALES[scale].repeats
    settings = checked(policies, sizes, epsilons, alphas, repeats, tune_on, tune_ridge, seed)
    check(settings)
    source: Source
    if tuning is not None and evaluation is not None:
        if scale != "demo":
            raise ValueError(
                f"scale {scale!r} is of simulated logs, and these are your own: leave it out"
            )
        if any(map(needs_offset, settings.policies)):
            check_explored(tuning, exploration)
        source = OwnLogs(tuning, evaluation, exploration, Path(out), where, seed, support)
    elif tuning is not None or evaluation is not None or exploration is not None:
        raise ValueError("logs of your own come in pairs: give both tuning and evaluation")
    elif scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}")
    else:
        source = Simulated(SCALES[scale], seed, Path(out), where, support)
    with Journal(Path(out), source.known_by, made_by()) as journal:
        return _Sitting(settings, source, where, journal, progress).study()


class _Sitting:
    """One call of `study`: makes the runs that no earlier one has made."""

    def __init__(
        self,
        settings: Settings,
        source: Source,
        engine: Engine,
        journal: Journal,
        progress: Progress | None,
    ) -> None:
        self.settings, self.source, self.engine = settings, source, engine
        self.journal, self.session = journal, journal.session
        self.progress = progress
        self.done, self.total = 0.0, 1.0
        self.warned: set[str] = set()

    def study(self) -> Study:
        tuned = self._stage(TUNING, tuning_runs(self.settings))
        curves = tunings(self.settings, tuned)
        ridged = ridge_tunings(self.settings, tuned)
        judged = [run for entry in entries(self.settings, curves) for run in entry.runs]
        judged += [run for entry in entries(self.settings, ridged) for run in entry.runs]
        judged = list(dict.fromkeys(judged)) + reference_runs(self.settings)
        found = self._stage(EVALUATION, judged)
        return Study(
            folder=self.journal.folder,
            settings=self.settings,
            logs=dict(self.journal.summaries),
            tunings=curves,
            ridge_tunings=ridged,
            tuned=tuned,
            evaluated=found,
            seconds=self.journal.seconds,
            engine=self.engine.name,
            known_by=self.source.known_by,
            options=self.source.options,
        )

    def _stage(self, stage: str, runs: Sequence[Run]) -> Mapping[Run, Outcome]:
        recorded = self.journal.outcomes(stage)
        missing = [run for run in runs if run not in recorded]
        if missing:
            logs = self._logs()
            log = logs.tuning if stage == TUNING else logs.evaluation
            self.total = whole_cost(self.settings, len(logs.tuning), len(logs.evaluation))
            self.done += sum(cost(run) for run in runs if run in recorded) * len(log)
            given: dict[str, Any] = {}
            if any(needs_offset(run.policy) for run in missing):
                given["offset"] = logs.offset(log)
            for outcome in play_all(missing, log, self.engine, given, called(stage)):
                self.journal.record(stage, outcome, self.session)
                self.done += cost(outcome.run) * len(log)
                self._tell(f"{stage}: {outcome.run.policy}")
            recorded = self.journal.outcomes(stage)
        return {run: recorded[run] for run in runs}

    def _logs(self) -> Logs:
        self._tell("making the logs ready")
        logs = self.source.logs
        for role, log in (
            ("tuning", logs.tuning),
            ("evaluation", logs.evaluation),
            ("exploration", logs.exploration),
        ):
            if log is not None and role not in self.journal.summaries:
                self.journal.describe(summarise(role, log))
        for caution in cautions(self.settings.policies, self.journal.summaries):
            if caution not in self.warned:
                self.warned.add(caution)
                warnings.warn(caution, StudyWarning, stacklevel=5)
        return logs

    def _tell(self, what: str) -> None:
        if self.progress is not None:
            self.progress(what, self.done, self.total)
