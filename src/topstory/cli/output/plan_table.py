"""A plan as text. Every number comes from the report; nothing is computed here."""

from __future__ import annotations

from rich.console import Console

from topstory.cli.output.numbers import NO_VALUE
from topstory.cli.output.tables import plain_table
from topstory.cli.reports.plan import PlanReport


def show_plan(report: PlanReport, console: Console) -> None:
    """A row for each share of exploration; then what they assume."""
    table = plain_table(
        *("at random", "visits", "days", "payoff lost", "of all"),
        title=f"To see a lift of {100 * report.lift:g} %",
    )
    most = "≤ " if report.random_value is None else ""
    for each in report.options:
        days = NO_VALUE if each.days is None else f"{each.days:,.1f}"
        table.add_row(
            *(f"{100 * each.share:g} %", f"{each.visits:,}", days),
            *(f"{most}{each.cost:,.0f}", f"{most}{100 * each.cost_share:.1f} %"),
        )
    console.print(table)
    console.print()
    earned = (
        "This log does not say what random articles earn, so the loss is an upper limit."
        if report.random_value is None
        else f"Random articles earn {report.random_value:.4f}."
    )
    for note in (
        f"Today a visit earns {report.value:.4f}, with {report.pool_size:.0f} articles to choose "
        f"from. {earned}",
        "The lift would be seen with 80 % probability, at 5 % error, from the visitors at random "
        "alone. Where the service records propensities of the others too, fewer are needed.",
        f"Measured on this log: {report.design_effect:.2f} of its events tell as much as one "
        "independent event.",
    ):
        console.print(note, style="dim", markup=False, soft_wrap=True)
