"""An evaluation as text. Every number comes from the report; nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from rich.console import Console
from rich.table import Table

from topstory.cli.output.numbers import NO_VALUE, count, interval, number, rate
from topstory.cli.output.tables import plain_table
from topstory.cli.output.words import mean_payoff
from topstory.cli.reports.evaluate import EvaluationReport, QuantityReport, ValueReport
from topstory.evaluation.off_policy.value import lift_number
from topstory.policies.registry import REGISTRY

DAYS = "*"  # marks an interval that is for these days alone


def show_evaluation(report: EvaluationReport, console: Console) -> None:
    """The values; then how much of the log speaks about each; then what to know."""
    what = mean_payoff(report.binary)
    over = "lift" if report.baseline == "logged" else f"lift over {report.baseline}"
    judged = f"{count(report.events, 'event')} of {PurePath(report.log).name}"
    table = plain_table(
        *("", what, "95 % interval", over, "95 % interval", "smallest to see"),
        title=f"{report.estimator} on {judged}",
    )
    table.add_row("as logged", number(report.logged.value, 4), ends(report.logged, 4), "", "", "")
    labels = short_names([each.policy for each in report.values])
    for label, each in zip(labels, report.values, strict=True):
        table.add_row(
            *(label, number(each.value.value, 4), ends(each.value, 4)),
            *(percent(each.lift.value), percents(each.lift), percent(each.smallest_lift)),
        )
    console.print(table)
    console.print()
    console.print(_support(labels, report.values))
    console.print()
    for label, each in zip(labels, report.values, strict=True):
        for caution in each.cautions:
            text = f"{label}: {caution}."
            console.print(text, style="yellow", markup=False, soft_wrap=True)
    for note in _notes(report):
        console.print(note, style="dim", markup=False, soft_wrap=True)


def _support(labels: Sequence[str], values: Sequence[ValueReport]) -> Table:
    table = plain_table(
        "", "effective events", "mean weight", "95 % interval", "largest", "without support"
    )
    for label, each in zip(labels, values, strict=True):
        table.add_row(
            *(label, f"{each.effective_events:,.0f}", number(each.mean_weight.value, 3)),
            *(ends(each.mean_weight, 3), f"{each.largest_share:.2%}", f"{each.unsupported:.1%}"),
        )
    return table


def short_names(policies: Sequence[str]) -> list[str]:
    """Files without their folders, if they still differ then.

    >>> short_names(["models/may.safetensors", "ucb"])
    ['may.safetensors', 'ucb']
    """
    names = [PurePath(each).name for each in policies]
    return names if len(set(names)) == len(names) else list(policies)


def ends(found: QuantityReport, digits: int) -> str:
    """The interval for days like these; where there is none, that for these days, marked.

    >>> ends(QuantityReport(0.1, None, (0.08, 0.12)), 2)
    '[0.08…0.12]*'
    """
    if found.interval is not None or found.these_days is None:
        return interval(found.interval, digits)
    return interval(found.these_days, digits) + DAYS


def percent(value: float | None) -> str:
    """A lift; one of more than ten times is no number that anybody should use.

    >>> percent(0.123), percent(None), percent(37.5)
    ('+12.3 %', '–', '> +1,000 %')
    """
    return NO_VALUE if value is None else f"{lift_number(value)} %"


def percents(found: QuantityReport) -> str:
    """The interval of a lift.

    >>> percents(QuantityReport(0.1, (0.05, 0.151), None))
    '[+5.0…+15.1 %]'
    """
    chosen = found.these_days if found.interval is None else found.interval
    if chosen is None:
        return ""
    low, high = map(lift_number, chosen)
    return f"[{low}…{high} %]" + (DAYS if found.interval is None else "")


def _is_file(value: ValueReport) -> bool:
    return value.policy not in REGISTRY


def _notes(report: EvaluationReport) -> list[str]:
    notes = []
    if report.trained_events:
        notes.append(
            f"Policies given by name learned from the {count(report.trained_events, 'event')} "
            "before those."
        )
    if any(map(_is_file, report.values)):
        notes.append(
            "A policy from a file looks better than it is if it learned from these events: train "
            "it on earlier ones."
        )
    speed = "" if report.events_per_second is None else f" ({rate(report.events_per_second)})"
    notes.append(f"Propensities: {report.propensities}.")
    notes.append(f"Intervals cover {report.covers}{speed}.")
    if any(each.too_short for each in report.values):
        notes.append(f"{DAYS} for these days alone: the log is too short to speak of others.")
    return notes
