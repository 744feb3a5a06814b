"""A trained policy as text. Every number comes from the report; nothing is computed here."""

from __future__ import annotations

from rich.console import Console

from topstory.cli.output.numbers import count, interval, number, rate
from topstory.cli.output.tables import plain_table
from topstory.cli.output.words import mean_payoff
from topstory.cli.reports.train import HeldOutReport, TrainReport
from topstory.policies.entries import listed


def show_training(report: TrainReport, console: Console) -> None:
    """How good the policy is on events that it had not seen; then what was learned and written."""
    numbers = listed(report.parameters)
    title = report.paper + (f" ({numbers})" if numbers else "")
    if report.held_out is None:
        console.print(title, style="bold", soft_wrap=True)
    else:
        _show_held_out(report.held_out, title, console)
    console.print()
    console.print(_written(report), markup=False, soft_wrap=True)
    for note in _notes(report):
        console.print(note, style="dim", markup=False, soft_wrap=True)
    console.print()
    console.print(_served(report), markup=False, soft_wrap=True, highlight=False)


def _show_held_out(found: HeldOutReport, title: str, console: Console) -> None:
    table = plain_table(
        *("", mean_payoff(found.binary), "95 % interval", "relative", "95 % interval", "trials"),
        title=f"{title} on {count(found.events, 'event')} that it had not seen",
    )
    for name, bucket in (("greedy", found.deployment), ("exploring", found.learning)):
        table.add_row(
            *(name, number(bucket.ctr, 4), interval(bucket.interval, 4)),
            *(number(bucket.relative_ctr, 3), interval(bucket.relative_interval, 2)),
            f"{bucket.trials:,}",
        )
    console.print(table)


def _written(report: TrainReport) -> str:
    learned = f"learned from {count(report.events, 'event')} of {report.log}"
    if report.refitted:
        learned += ", those held out included"
    speed = "" if report.events_per_second is None else f", {rate(report.events_per_second)}"
    return (
        f"Wrote {report.out}: it knows {count(report.articles, 'article')}, and {learned} "
        f"({report.seconds:.2f} s{speed})."
    )


def _served(report: TrainReport) -> str:
    """The lines of a service's configuration that start from this policy."""
    lines = [
        "To serve it, the configuration has:",
        f"  context = {report.context}",
        *([] if report.features is None else [f"  features = {_text(report.features)}"]),
        "  [policy]",
        f"  start = {_text(report.out)}",
    ]
    low, high = report.payoffs
    if low < 0 or high > 1:
        lines += [
            "  [limits]",
            f"  payoffs = [{low:g}, {high:g}]  # of the log; what is beyond is refused",
        ]
    return "\n".join(lines)


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _notes(report: TrainReport) -> list[str]:
    notes = []
    if report.held_out is not None:
        what = mean_payoff(report.held_out.binary)
        notes.append(
            "Replayed on the last part of the log, without learning from it, after learning the "
            f"rest. Relative: divided by the {what} of random articles there, "
            f"{number(report.held_out.random_ctr, 4)}. Intervals are over the events of this log."
        )
    if report.weights != "none":
        notes.append(
            "Each event counts 1/(pool size × propensity) times: they teach as much as "
            f"{report.effective_events:,.0f} events with equal weights. "
            f"{count(report.capped, 'weight')} above 10 counted as 10."
        )
    return notes
