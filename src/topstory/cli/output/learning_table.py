"""Policies that learn on any log, as text. Every number comes from the report."""

from __future__ import annotations

from pathlib import PurePath

from rich.console import Console

from topstory.cli.output.evaluation_table import DAYS, ends, percent, percents
from topstory.cli.output.numbers import count, number
from topstory.cli.output.tables import plain_table
from topstory.cli.reports.dr_ns import LearningReports


def show_learning(report: LearningReports, console: Console) -> None:
    """A row for each policy and quantile; then what they mean."""
    table = plain_table(
        *(
            "",
            "q",
            "value",
            "95 % interval",
            "lift",
            "95 % interval",
            "trials",
            "missing",
            "bias ≤",
        ),
        title=f"dr-ns on {count(report.events, 'event')} of {PurePath(report.log).name}",
    )
    for each in report.policies:
        table.add_row(
            *(each.policy, f"{each.quantile:g}", number(each.value.value, 4), ends(each.value, 4)),
            *(percent(each.lift.value), percents(each.lift), f"{each.trials:,}"),
            *(f"{each.missing:.1%}", number(each.bias_bound, 4)),
        )
    console.print(table)
    console.print()
    notes = [
        f"Logged: {number(report.logged, 4)} per visit. With a quantile q of 0 trials are missing "
        "only until the smallest p/π is met, and then none. Above, more events are learned from, "
        "and a share of the policy's own trials stays missing; that biases the value by no more "
        "than the last column says.",
        "Intervals are over the events of this log and one learning path.",
    ]
    if any(each.value.interval is None for each in report.policies):
        notes.append(f"{DAYS} for these days alone: the log is too short to speak of others.")
    for note in notes:
        console.print(note, style="dim", markup=False, soft_wrap=True)
