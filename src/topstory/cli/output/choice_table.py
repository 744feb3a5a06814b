"""The policy to run, as text. Every number comes from the report; nothing is computed here."""

from __future__ import annotations

from rich.console import Console

from topstory.cli.output.evaluation_table import DAYS, ends, percent, percents
from topstory.cli.output.numbers import count, number
from topstory.cli.output.tables import plain_table
from topstory.cli.output.words import mean_payoff
from topstory.cli.reports.choose import ChoiceReport


def show_choice(report: ChoiceReport, console: Console) -> None:
    """The verdict; then all policies, the best first; then how it was found."""
    judged = report.evaluation
    style = "bold green" if report.sure else "bold yellow"
    console.print(report.verdict, style=style, markup=False, soft_wrap=True)
    console.print()
    table = plain_table(
        *("", mean_payoff(judged.binary), "95 % interval", "lift", "95 % for all at once"),
        "effective events",
    )
    values = {each.policy: each for each in judged.values}
    lifts = sorted(report.together.items(), key=lambda each: -(each[1].value or -1.0))
    for name, lift in lifts:
        value = values[name]
        table.add_row(
            *(name, number(value.value.value, 4), ends(value.value, 4)),
            *(percent(lift.value), percents(lift), f"{value.effective_events:,.0f}"),
        )
    table.add_row("as logged", number(judged.logged.value, 4), ends(judged.logged, 4), "", "", "")
    console.print(table)
    console.print()
    wrote = f"Wrote {report.file}: give it to the service as `start` of a pool."
    console.print(wrote, markup=False, soft_wrap=True)
    for name, value in values.items():
        for caution in value.cautions:
            console.print(f"{name}: {caution}.", style="yellow", markup=False, soft_wrap=True)
    notes = [
        report.why,
        f"Policies learned from {count(judged.trained_events, 'event')}, and were judged on the "
        f"{count(judged.events, 'event')} after them; the file learned from all.",
        f"Propensities: {judged.propensities}.",
        f"Intervals cover {judged.covers}.",
    ]
    if any(each.interval is None for each in report.together.values()):
        notes.append(f"{DAYS} for these days alone: the log is too short to speak of others.")
    for note in notes:
        console.print(note, style="dim", markup=False, soft_wrap=True)
