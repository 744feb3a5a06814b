"""The report of a study: all its records, computed in one pass."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

from topstory.evaluation.replays.run import TOTAL
from topstory.evaluation.replays.warm_start import needs_offset
from topstory.evaluation.tuning.grids import SIZES
from topstory.evaluation.tuning.recommendation import PAPER_RIDGE
from topstory.evaluation.uncertainty.paths import default_repeats
from topstory.policies.registry import SYMBOLS
from topstory.report import LogDescription, Report
from topstory.report.wording import worded
from topstory.studies.logs.simulated import SCALES
from topstory.studies.logs.summaries import EXPLORATION, LogSummary, role_name
from topstory.studies.logs.warnings import study_warnings
from topstory.studies.report.answer import study_answer
from topstory.studies.report.candidates import Candidates
from topstory.studies.report.estimates import relative_ctr
from topstory.studies.report.figure_data import curves, histogram, late, scatters, series
from topstory.studies.report.summary import summary
from topstory.studies.report.table1 import table1
from topstory.studies.run_log import made_by
from topstory.studies.settings import STUDIED, StudySettings

if TYPE_CHECKING:
    from topstory.studies.result import Study

LIBRARIES = ("numpy", "numba", "pyarrow", "scipy")


def build_report(study: Study) -> Report:
    """Everything that the report shows."""
    candidates = Candidates.of(study)
    clouds = scatters(study)
    omniscient = study.reference("omniscient", "tuning").bucket("deployment")
    logs = study.logs
    evaluated = logs["evaluation"].inspection.events if "evaluation" in logs else 0
    memberships = logs["tuning"].memberships if "tuning" in logs else None
    answer = study_answer(candidates)
    return Report(
        title=answer.question,
        answer=answer,
        summary=tuple(
            worded(sentence, omniscient.binary)
            for sentence in (
                *answer.sentences,
                *summary(candidates, study.settings.sizes, clouds),
            )
        ),
        table=table1(study.settings, candidates),
        curves=curves(study),
        tuning_omniscient=relative_ctr(omniscient),
        scatters=clouds,
        histogram=histogram(memberships),
        series=series(study),
        late=late(study),
        logs=tuple(
            _description(logs[role])
            for role in ("tuning", "evaluation", "exploration")
            if role in logs
        ),
        settings=tuple(_settings(study)),
        learning_share=study.settings.learning_share,
        binary=omniscient.binary,
        command=_command(study.settings, study.options, evaluated),
        warnings=(
            *(
                f"The {role} log: {logs[role].inspection.verdict[0]}"
                for role in ("tuning", "evaluation")
                if role in logs and not logs[role].inspection.fit
            ),
            *(
                f"{each[0].upper()}{each[1:]}."
                for each in study_warnings(study.settings.policies, logs, study.settings.repeats)
            ),
        ),
    )


def _description(log: LogSummary) -> LogDescription:
    found = log.inspection
    pools = f"{found.pools:,}"
    if found.smallest_pool is not None:
        sizes = f"{found.smallest_pool}"
        if found.smallest_pool != found.largest_pool:
            sizes += f" to {found.largest_pool}"
        pools += f", of {sizes} articles"
    features = found.article_features
    return LogDescription(
        role=log.role,
        properties=(
            ("events", f"{found.events:,}"),
            ("CTR", "–" if found.ctr is None else f"{found.ctr:.4f}"),
            ("context", f"{found.dimension} features, including the constant"),
            (
                "articles",
                f"{found.articles:,}, "
                + ("no features" if features is None else f"{features} features each"),
            ),
            ("pools", pools),
            (
                "shown uniformly at random?",
                f"p = {found.uniformity.p_value:.2g}"
                if found.uniformity.degrees_of_freedom
                else "not tested",
            ),
        ),
        verdict=found.verdict,
        fit=found.fit,
        days=tuple((day.date.isoformat(), day.events, day.ctr) for day in found.days),
    )


def _settings(study: Study) -> list[tuple[str, str]]:
    settings = study.settings
    replays = len(study.tuned) + len(study.evaluated)
    events = sum(o.events for runs in (study.tuned, study.evaluated) for o in runs.values())
    worked = sum(o.seconds for runs in (study.tuned, study.evaluated) for o in runs.values())
    return [
        *((role_name(role), identity) for role, identity in study.identities.items()),
        ("policies", ", ".join(settings.policies)),
        ("data sizes", ", ".join(f"{100 * size:g} %" for size in settings.sizes)),
        *_tried(study),
        ("tuned on", _tuned_on(settings)),
        *_offset(study),
        ("learning paths (seeds)", f"{settings.repeats} on the evaluation log"),
        ("seed", f"{settings.seed}"),
        ("replays", f"{replays:,} over {events:,} events"),
        (
            "duration",
            f"{_duration(study.seconds)} ({_duration(worked)} of replays, engine {study.engine})",
        ),
        ("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
        (
            "versions",
            ", ".join(
                [f"Python {platform.python_version()}", made_by()]
                + [f"{name} {version(name)}" for name in LIBRARIES]
            ),
        ),
    ]


def _offset(study: Study) -> list[tuple[str, str]]:
    explored = study.logs.get(EXPLORATION)
    if explored is None or not any(map(needs_offset, study.settings.policies)):
        return []
    return [("warm offsets", f"{explored.offset_by} on {explored.inspection.events:,} events")]


def _tried(study: Study) -> list[tuple[str, str]]:
    """The values tried of each parameter that is tuned, and of the ridge."""
    tried: dict[str, set[float]] = {}
    for run in study.tuned:
        for name, value in run.numbers.items():
            tried.setdefault(name, set()).add(value)
    tried["ridge"] = {PAPER_RIDGE} | tried.pop("ridge", set())
    return [
        (
            name if name == "ridge" else f"values of {SYMBOLS.get(name, name)}",
            ", ".join(f"{value:g}" for value in sorted(values)),
        )
        for name, values in tried.items()
    ]


def _command(settings: StudySettings, logs: Sequence[str], events: int) -> str:
    """The command that repeats the study."""
    words = ["topstory", "study", "OUT", *logs]
    scale = next((SCALES[name] for name in SCALES if name in logs), None)
    if settings.policies != (STUDIED if scale is None else scale.policies):
        words += ["--policy", ",".join(settings.policies)]
    if settings.sizes != (SIZES if scale is None else scale.sizes):
        words += ["--sizes", _joined(settings.sizes)]
    for name, values in settings.values.items():
        words += ["--values", f"{name}={_joined(values)}"]
    if settings.repeats != (default_repeats(events) if scale is None else scale.repeats):
        words += ["--repeats", f"{settings.repeats}"]
    if settings.tune_on != TOTAL:
        words += ["--tune-on", settings.tune_on]
    if settings.learning_share != StudySettings().learning_share:
        words += ["--learning-share", f"{settings.learning_share:g}"]
    if bool(settings.ridges) == ("paper" in logs):
        words += ["--tune-ridge" if settings.ridges else "--paper-ridge"]
    if settings.delays:
        words += ["--delays", _joined(settings.delays)]
    if settings.seed:
        words += ["--seed", f"{settings.seed}"]
    return shlex.join(words)


def _joined(values: Sequence[float]) -> str:
    return ",".join(f"{value:g}" for value in values)


def _tuned_on(settings: StudySettings) -> str:
    if settings.tune_on != TOTAL:
        return f"the {settings.tune_on} bucket"
    return f"both buckets, with {100 * settings.learning_share:g} % of the traffic learning"


def _duration(seconds: float) -> str:
    """A duration.

    >>> _duration(12.34), _duration(754)
    ('12.3 s', '12 min 34 s')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"
