"""The command reference, made from the commands themselves: `python -m docs.generate`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import msgspec
import typer
from msgspec import inspect as types

from topstory.cli.app import app
from topstory.cli.reports.choose import ChoiceReport
from topstory.cli.reports.evaluate import EvaluationReport, QuantityReport, ValueReport
from topstory.cli.reports.export import ExportReport
from topstory.cli.reports.features import AppliedReport
from topstory.cli.reports.plan import PlanOption, PlanReport
from topstory.cli.reports.prior import PriorReport
from topstory.cli.reports.propensities import (
    CalibrationReport,
    OverlapReport,
    PropensityReport,
)
from topstory.cli.reports.replay import (
    BucketReport,
    ExplorationReport,
    LiftReport,
    PolicyReport,
    ReplayReport,
    SavedReport,
    UniformityReport,
    WarmReport,
)
from topstory.cli.reports.simulate import SimulationReport
from topstory.cli.reports.split import PartReport, SplitReport
from topstory.cli.reports.study import StudyReport
from topstory.cli.reports.train import HeldOutBucket, HeldOutReport, TrainReport
from topstory.cli.reports.tune import CurveReport, EstimateReport, PointReport, TuneReport
from topstory.events import Inspection, Rejection, Uniformity
from topstory.events.formats.faults import Fault
from topstory.events.formats.importing import ImportReport
from topstory.events.quality.checks import Check
from topstory.events.quality.fields import CommonValue, FieldSummary
from topstory.events.quality.inspection import ArticleSummary, Day
from topstory.events.quality.uniformity import NeverShown, Standout
from topstory.features.description import (
    ArticleClusterReport,
    ClusterReport,
    FeatureReport,
    Liking,
    TriedMethod,
)
from topstory.features.fields.field import FieldReport
from topstory.features.regression.early_stopping import Step
from topstory.report.records import Cell, Number, Row, Table1
from topstory.serving.api.messages import OffPolicyValue, PolicyComparison
from topstory.serving.client.placing import PlacementReport
from topstory.serving.upkeep.backup import BackedUp
from topstory.serving.upkeep.excluding import ExclusionReport
from topstory.serving.upkeep.journal_export import Exported
from topstory.serving.upkeep.offline_promotion import PromotionReport
from topstory.serving.upkeep.verification import Verified

INTRODUCTION = """\
# Command line

<!-- Made by `python -m docs.generate` from the commands: edit those. -->

Results go to standard output: tables, or one JSON document with `--json`. Progress and warnings go
to standard error. `topstory --version` prints the version.

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | failed, with one sentence on standard error (`TOPSTORY_DEBUG=1` adds the traceback) |
| 2 | wrong usage |
| 130 | interrupted by Ctrl-C |
"""

EXAMPLES = {
    "simulate": """\
```console notest
$ topstory simulate week/ --events 36000000 --days 7 --seed 1
$ topstory simulate september/ --events 5000000 --days 10 --start 2008-09-01 --raw
$ topstory simulate day.gz --events 1000000 --format r6a
```
""",
    "import": """\
```console notest
$ topstory import r6a ydata-fp-td-clicks-v1_0.2009050*.gz logs/
$ topstory import r6b ydata-fp-td-clicks-v2_0.201110*.gz logs/ --max-bad 0.001
$ topstory import csv impressions.csv --suggest > mapping.toml
$ topstory import csv impressions.csv logs/ --map mapping.toml
```
""",
    "export": """\
```console notest
$ topstory export logs/ week.npz --to obp
$ topstory export logs/ week.dsjson --to dsjson && vw --cb_explore_adf --dsjson week.dsjson
```
""",
    "replay": """\
```console notest
$ topstory replay logs/ --policy linucb-hybrid --alpha 0.3
$ topstory replay logs/ --policy all --alpha 0.3 --epsilon 0.1 --warm-from last-month/
$ topstory replay logs/ --policy linucb-hybrid --baseline logged --save policy.safetensors
$ topstory replay logs/ --policy egreedy,ucb --json | jq '.policies[].deployment.ctr'
```
""",
    "tune": """\
```console notest
$ topstory tune logs/ --policy linucb-hybrid
$ topstory tune logs/ --policy egreedy --grid 0.05,0.1,0.2 --sizes 1,0.1,0.01
```
""",
    "study": """\
```console notest
$ topstory study report/
$ topstory study report/ --scale paper --tune-ridge
$ topstory study report/ --tuning may-01/ --evaluation may-03-09/ --exploration september/
$ topstory study report/ --scale paper --engine ray --address auto
```
""",
    "prior": """\
```console notest
$ topstory prior september/ prior.safetensors
$ topstory replay may/ --policy linucb-hybrid,linucb-hybrid-prior --prior prior.safetensors
```
""",
    "train": """\
```console notest
$ topstory train logs/ --policy linucb-hybrid --alpha 0.3 --out policy.safetensors
$ topstory train raw/ --policy ucb-seg --features features.safetensors --out policy.safetensors
```
""",
    "evaluate": """\
```console notest
$ topstory evaluate logs/ --policy policy.safetensors
$ topstory evaluate logs/ --policy linucb-hybrid,linucb-disjoint --alpha 0.3 --estimator dr
```
""",
    "choose": """\
```console notest
$ topstory choose logs/ chosen/
$ topstory choose logs/ chosen/ --policy egreedy,linucb-hybrid,lints-hybrid
```
""",
    "plan": """\
```console notest
$ topstory plan logs/ --lift 0.05
```
""",
    "propensities": """\
```console notest
$ topstory propensities logs/ estimated/
```
""",
    "serve": """\
```console notest
$ topstory serve
$ topstory serve --config topstory.toml --check-config
$ topstory serve --config topstory.toml --workers 4
```
""",
    "export-journal": """\
```console notest
$ topstory export-journal topstory-data/ logs/ --part uniform
$ topstory replay logs/ --policy all --alpha 0.3
```
""",
    "backup-journal": """\
```console notest
$ topstory backup-journal backups/monday/ --config topstory.toml
```
""",
    "verify-journal": """\
```console notest
$ topstory verify-journal topstory-data/
```
""",
    "exclude": """\
```console notest
$ topstory exclude --config topstory.toml --key web --since 2026-05-01T12:00
```
""",
    "place": """\
```console notest
$ topstory place topstory.toml logs/ --key-file key
```
""",
    "promote": """\
```console notest
$ topstory promote topstory.toml policy.safetensors --dry-run
$ topstory promote topstory.toml policy.safetensors --key-file ops.key --note "trained on May"
```
""",
    "new-key": "```console notest\n$ topstory new-key web --role decide --role feedback\n```\n",
    "inspect": "```console notest\n$ topstory inspect logs/\n```\n",
    "split": """\
```console notest
$ topstory split logs/ past/ recent/ --at 0.8
$ topstory split logs/ past/ recent/ --at 2026-03-02
```
""",
    "features fit": """\
```console notest
$ topstory features fit september/ features.safetensors --support behaviours=0.01
```
""",
    "features apply": """\
```console notest
$ topstory features apply may/ features.safetensors may-six/
$ topstory replay may-six/ --policy linucb-hybrid --alpha 0.3
```
""",
    "features show": """\
```console notest
$ topstory features show features.safetensors --picture memberships.svg
```
""",
    "demo": "```console notest\n$ topstory demo\n```\n",
    "compile": "```console notest\n$ topstory compile --policy ucb --dimension 12\n```\n",
}

JSON = {
    "simulate": "JSON of simulate",
    "import": "JSON of import",
    "export": "JSON of export",
    "replay": "JSON of replay and demo",
    "tune": "JSON of tune",
    "study": "JSON of study",
    "prior": "JSON of prior",
    "train": "JSON of train",
    "evaluate": "JSON of evaluate",
    "choose": "JSON of choose",
    "plan": "JSON of plan",
    "propensities": "JSON of propensities",
    "inspect": "JSON of inspect",
    "split": "JSON of split",
    "export-journal": "JSON of export-journal",
    "backup-journal": "JSON of backup-journal",
    "verify-journal": "JSON of verify-journal",
    "exclude": "JSON of exclude",
    "place": "JSON of place",
    "promote": "JSON of promote",
    "demo": "JSON of replay and demo",
    "features fit": "JSON of features fit and show",
    "features apply": "JSON of features apply",
    "features show": "JSON of features fit and show",
}

WORDS: dict[type, str] = {
    types.IntType: "whole number",
    types.FloatType: "number",
    types.StrType: "text",
    types.BoolType: "true or false",
    types.DateType: "date",
    types.DateTimeType: "time",
    types.NoneType: "null",
}


INTERVALS = "Intervals are pairs of low and high. Unknown numbers are null."
RECORDS: dict[str, tuple[str, tuple[type[msgspec.Struct], ...]]] = {
    "simulate": ("", (SimulationReport,)),
    "import": ("Lines count from 1.", (ImportReport, Fault)),
    "export": ("", (ExportReport,)),
    "export-journal": ("", (Exported,)),
    "backup-journal": ("The time is in UTC.", (BackedUp,)),
    "verify-journal": ("", (Verified,)),
    "exclude": ("`record` is null if nothing was excluded.", (ExclusionReport,)),
    "place": ("", (PlacementReport,)),
    "promote": (
        "`record` is null if nothing was changed.",
        (PromotionReport, PolicyComparison, OffPolicyValue),
    ),
    "replay": (
        INTERVALS + " With `--estimator dr-ns` the document is `LearningReports`.",
        (
            *(ReplayReport, PolicyReport, BucketReport, LiftReport, ExplorationReport),
            *(UniformityReport, WarmReport, SavedReport),
        ),
    ),
    "split": ("", (SplitReport, PartReport)),
    "tune": (INTERVALS, (TuneReport, CurveReport, PointReport, EstimateReport)),
    "study": (
        "Sizes and lifts are shares. Unknown numbers are null.",
        (StudyReport, Table1, Row, Cell, Number),
    ),
    "prior": ("", (PriorReport,)),
    "train": (INTERVALS, (TrainReport, HeldOutReport, HeldOutBucket)),
    "evaluate": (INTERVALS, (EvaluationReport, ValueReport, QuantityReport)),
    "plan": ("", (PlanReport, PlanOption)),
    "propensities": ("", (PropensityReport, CalibrationReport, OverlapReport)),
    "choose": ("The evaluation is as `evaluate` prints it.", (ChoiceReport,)),
    "inspect": (
        "Times are in UTC. Unknown numbers are null.",
        (
            *(Inspection, FieldSummary, CommonValue, Day, ArticleSummary, Uniformity, Standout),
            *(NeverShown, Rejection, Check),
        ),
    ),
    "features show": (
        "",
        (
            *(FeatureReport, FieldReport, TriedMethod, ClusterReport, ArticleClusterReport),
            *(Liking, Step),
        ),
    ),
    "features apply": ("", (AppliedReport,)),
}


def reference() -> str:
    """The whole page, in Markdown.

    >>> reference().splitlines()[0]
    '# Command line'
    """
    group: Any = typer.main.get_command(app)
    parts = [INTRODUCTION]
    for name, command in group.commands.items():
        for part, each in getattr(command, "commands", {"": command}).items():
            parts += _command(f"{name} {part}".strip(), each)
    parts += _schema()
    return "\n".join(parts)


def _command(name: str, command: Any) -> Iterator[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    usage = " ".join(["topstory", name, *(p.name.upper() for p in arguments), "[OPTIONS]"])
    yield f"## topstory {name}\n\n```text\n{usage}\n```\n"
    yield inspect.cleandoc(command.help) + "\n"
    yield EXAMPLES[name]
    yield "| | |\n|---|---|"
    for param in arguments:
        yield f"| `{param.name.upper()}` | {param.help} |"
    for param in options:
        yield f"| {_spelling(param)} | {_cell(param.help)}{_default(param)} |"
    title = JSON.get(name)
    if title is None:
        yield ""
        return
    yield f"\nThe fields of `--json`: [{title}](#{title.lower().replace(' ', '-')}).\n"


def _spelling(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar}"
    return ", ".join(f"`{spelled}{value}`" for spelled in option.opts)


def _default(option: Any) -> str:
    if option.required:
        return " Required."
    if option.default is None or option.is_flag:
        return ""
    text = isinstance(option.default, str)
    return f" Default: {option.default if text else format(option.default, ',')}."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _schema() -> Iterator[str]:
    for command, (remark, records) in RECORDS.items():
        yield f"## {JSON[command]}\n"
        yield f"{remark} Fields may be added in later versions.\n".lstrip()
        for record in records:
            yield from _record(record)


def _record(record: type[msgspec.Struct]) -> Iterator[str]:
    yield f"**{record.__name__}**: {(inspect.getdoc(record) or '').splitlines()[0]}\n"
    fields = [(field.name, types.type_info(field.type)) for field in msgspec.structs.fields(record)]
    if any(isinstance(kind, types.Metadata) for _, kind in fields):
        yield "| field | type | meaning |\n|---|---|---|"
    else:
        yield "| field | type |\n|---|---|"
    for name, kind in fields:
        meaning = ""
        if isinstance(kind, types.Metadata):
            meaning = f" {_cell((kind.extra_json_schema or {})['description'])} |"
        yield f"| `{name}` | {_kind(kind)} |{meaning}"
    yield ""


def _kind(found: Any) -> str:
    """A type in words.

    >>> _kind(types.type_info(tuple[float, float] | None))
    '[number, number] or null'
    """
    if isinstance(found, types.Metadata):
        return _kind(found.type)
    if isinstance(found, types.UnionType):
        return " or ".join(_kind(each) for each in found.types)
    if isinstance(found, types.TupleType):
        return f"[{', '.join(_kind(each) for each in found.item_types)}]"
    if isinstance(found, types.VarTupleType):
        return f"list of {_kind(found.item_type)}"
    if isinstance(found, types.DictType):
        return f"{_kind(found.key_type)} → {_kind(found.value_type)}"
    if isinstance(found, types.LiteralType):
        return " or ".join(f"`{value}`" for value in found.values)
    if isinstance(found, types.StructType):
        return found.cls.__name__
    return WORDS[type(found)]
