"""The paper's experiments, end to end (§5.5): tune each policy, then evaluate it on another log."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from topstory.engines import Engine
from topstory.engines import engine as named_engine
from topstory.evaluation import Outcome, Run, cost, play_all
from topstory.evaluation.replays.run import TOTAL
from topstory.evaluation.replays.warm_start import needs_exploration, needs_offset, needs_prior
from topstory.evaluation.tuning.grids import payoff_scale
from topstory.evaluation.tuning.tune import MAX_WIDENINGS
from topstory.evaluation.uncertainty.paths import REPEATS, default_repeats
from topstory.events import EventLog
from topstory.events.log import check_log
from topstory.policies.registry import TUNED
from topstory.studies.logs.simulated import SCALES, SimulatedLogs
from topstory.studies.logs.sources import (
    Logs,
    LogSource,
    OwnLogs,
    check_exploration,
    default_policies,
)
from topstory.studies.logs.summaries import role_name, summarise
from topstory.studies.logs.warnings import StudyWarning, study_warnings
from topstory.studies.plan import (
    EVALUATION,
    TUNING,
    beyond_the_edge,
    check_parameters,
    delayed_runs,
    evaluation_cells,
    recommended,
    reference_runs,
    total_cost,
    tuning_runs,
    tunings,
)
from topstory.studies.result import Study
from topstory.studies.run_log import RunLog, made_by
from topstory.studies.settings import StudySettings, checked_settings

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
    values: Mapping[str, Sequence[float]] | None = None,
    repeats: int | None = None,
    tune_on: str = TOTAL,
    learning_share: float = 0.1,
    tune_ridge: bool | None = None,
    delays: Sequence[float] = (),
    seed: int = 0,
    engine: str | Engine = "local",
    progress: Progress | None = None,
    **grids: Sequence[float] | None,
) -> Study:
    """Run the paper's whole evaluation, and record every run in a folder as it finishes.

    Called again on the same folder, it continues and repeats no run. `Study.write` writes the
    tables, the figures and the report to that folder.

    Args:
        out: the folder.
        scale: of the simulated logs: `demo` (2 M events to tune on, 6 M to evaluate on, three data
            sizes) or `paper` (4.7 M and 36 M, the paper's six data sizes and its ridge of 1).
        tuning: your own log to tune parameters on, together with `evaluation`, instead of
            simulated logs.
        evaluation: your own log to evaluate the policies on.
        exploration: a log of random exploration to fit the offsets of warm policies and priors on;
            and features, if the logs are raw (they have profiles, and contexts with only the
            constant).
        support: for features learned from raw logs: the smallest share of users that a category
            needs to be kept, one number or a number by field; by default the paper's 0.1, and 0.01
            for simulated logs.
        policies: names of the policies to compare. By default the paper's ten that learn, and
            unless the scale is `paper`, three that start from a prior fitted on the exploration.
        sizes: the shares of retained events to learn from; by default the paper's six, and 100, 20
            and 5 % in the demo.
        values: values to try of any parameter that a policy is tuned by, by its name. By default
            there are eight, and more beyond the edge if the best one is there; of α and the like,
            on the scale of the tuning log's payoffs.
        repeats: how many learning paths (seeds) to evaluate each policy with; by default 3, up to
            20 if the evaluation log has fewer than 500,000 events, and 4 in the demo.
        tune_on: what the parameters are chosen by: the CTR of a bucket, `deployment` (as in the
            paper) or `learning`, or the `total` over both.
        learning_share: the part of the traffic that learns, in that total.
        tune_ridge: search the ridge of linear models as well; by default unless the scale is
            `paper`, whose ridge is 1. Where the best one is the last one tried, more are tried.
        delays: minutes: replay each policy, with its recommended parameters, also with payoffs
            that it learns so much later, for a figure; the evaluation log needs timestamps.
        seed: the first seed, and that of the simulated world.
        engine: `serial`, `local` (all cores), `ray`, or an engine.
        progress: called with (what is being done, work done, work in all).
        **grids: values to try of one parameter, by its plural: `epsilons=…` is short for
            `values={"epsilon": …}`, and so is `alphas`.

    Warns:
        StudyWarning: if the logs cannot answer what is asked, such as what features are worth when
            contexts hold only the constant.
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
    for role, log in (("tuning", tuning), ("evaluation", evaluation), ("exploration", exploration)):
        if log is not None:
            check_log(log, role)
    where = named_engine(engine)
    if tuning is None and scale in SCALES:
        sizes = SCALES[scale].sizes if sizes is None else sizes
        repeats = SCALES[scale].repeats if repeats is None else repeats
        policies = SCALES[scale].policies if policies is None else policies
    elif tuning is not None:
        check_log(tuning)
        if policies is None:
            policies = default_policies(tuning, exploration)
    if repeats is None:
        repeats = REPEATS if evaluation is None else default_repeats(len(evaluation))
    ridge = scale != "paper" if tune_ridge is None else tune_ridge
    unit = 1.0 if tuning is None else payoff_scale(tuning.payoff)
    tried = _named_grids(grids)
    for name, given in (values or {}).items():
        if tried.get(name) is not None:
            raise ValueError(f"values of {name} are given twice: {TUNED[name].plural} and values")
        tried[name] = given
    settings = checked_settings(
        policies, sizes, tried, unit, repeats, tune_on, learning_share, ridge, seed, delays
    )
    check_parameters(settings)
    source: LogSource
    if tuning is not None and evaluation is not None:
        if scale != "demo":
            raise ValueError(
                f"scale {scale!r} applies only to simulated logs; leave it out for your own logs"
            )
        if needs_exploration(settings.policies):
            check_exploration(tuning, exploration)
        source = OwnLogs(tuning, evaluation, exploration, Path(out), where, seed, support)
    elif tuning is not None or evaluation is not None or exploration is not None:
        raise ValueError("a study of your own logs needs both a tuning and an evaluation log")
    elif scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}")
    else:
        source = SimulatedLogs(SCALES[scale], seed, Path(out), where, support)
    with RunLog(Path(out), source.identities, made_by()) as run_log:
        return _Session(settings, source, where, run_log, progress).study()


def _named_grids(grids: Mapping[str, Sequence[float] | None]) -> dict[str, Sequence[float] | None]:
    """Grids by the name of their parameter, given by its plural."""
    names = {each.plural: name for name, each in TUNED.items() if each.plural}
    if unknown := grids.keys() - names.keys():
        raise TypeError(
            f"study takes no argument {min(unknown)!r}; grids with a name of their own are "
            f"{', '.join(names)}: give others as values={{name: grid}}"
        )
    return {name: grids[plural] for plural, name in names.items() if plural in grids}


class _Session:
    """One call of `study`: makes the runs that no earlier call has made."""

    def __init__(
        self,
        settings: StudySettings,
        source: LogSource,
        engine: Engine,
        run_log: RunLog,
        progress: Progress | None,
    ) -> None:
        self.settings, self.source, self.engine = settings, source, engine
        self.run_log, self.number = run_log, run_log.session
        self.progress = progress
        self.done, self.total, self.widened = 0.0, 1.0, 0.0
        self.warned: set[str] = set()

    def study(self) -> Study:
        tuned = self._stage(TUNING, tuning_runs(self.settings))
        curves = tunings(self.settings, tuned)
        chosen = recommended(self.settings, curves)
        for _ in range(MAX_WIDENINGS):
            if not (wider := beyond_the_edge(self.settings, chosen, tuned)):
                break
            self.widened += sum(map(cost, wider))
            tuned |= self._stage(TUNING, wider)
            curves = tunings(self.settings, tuned)
            chosen = recommended(self.settings, curves)
        runs = [run for cell in evaluation_cells(self.settings, chosen) for run in cell.runs]
        evaluated = self._stage(EVALUATION, runs + reference_runs(self.settings))
        delayed = self._stage(EVALUATION, delayed_runs(self.settings, chosen))
        return Study(
            folder=self.run_log.folder,
            settings=self.settings,
            logs=dict(self.run_log.summaries),
            tunings=curves,
            recommended=chosen,
            tuned=tuned,
            evaluated=evaluated,
            delayed=delayed,
            seconds=self.run_log.seconds,
            engine=self.engine.name,
            identities=self.source.identities,
            options=self.source.options,
        )

    def _stage(self, stage: str, runs: Sequence[Run]) -> dict[Run, Outcome]:
        recorded = self.run_log.outcomes(stage)
        missing = [run for run in runs if run not in recorded]
        if missing:
            logs = self._logs()
            log = logs.tuning if stage == TUNING else logs.evaluation
            self.total = total_cost(self.settings, len(logs.tuning), len(logs.evaluation))
            self.total += self.widened * len(logs.tuning)
            self.done += sum(cost(run) for run in runs if run in recorded) * len(log)
            given: dict[str, Any] = {}
            if any(needs_offset(run.policy) for run in missing):
                given["offset"] = logs.offset(log)
            prior = logs.prior if any(needs_prior(run.policy) for run in missing) else None
            truth = logs.expected if stage == EVALUATION else None
            replayed = (missing, log, self.engine, given, role_name(stage), truth, prior)
            for outcome in play_all(*replayed):
                self.run_log.record(stage, outcome, self.number)
                self.done += cost(outcome.run) * len(log)
                self._report_progress(f"{stage}: {outcome.run.policy}")
            recorded = self.run_log.outcomes(stage)
        return {run: recorded[run] for run in runs}

    def _logs(self) -> Logs:
        self._report_progress("preparing the logs")
        logs = self.source.logs
        for role, log in (
            ("tuning", logs.tuning),
            ("evaluation", logs.evaluation),
            ("exploration", logs.exploration),
        ):
            if log is not None and role not in self.run_log.summaries:
                self.run_log.describe(summarise(role, log))
        found = study_warnings(
            self.settings.policies, self.run_log.summaries, self.settings.repeats
        )
        for message in found:
            if message not in self.warned:
                self.warned.add(message)
                warnings.warn(message, StudyWarning, stacklevel=5)
        return logs

    def _report_progress(self, what: str) -> None:
        if self.progress is not None:
            self.progress(what, self.done, self.total)
