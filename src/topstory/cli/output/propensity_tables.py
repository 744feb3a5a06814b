"""Estimated propensities as text. Every number comes from the report; nothing is computed here."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from topstory.cli.output.numbers import count
from topstory.cli.output.tables import plain_table
from topstory.cli.reports.propensities import PropensityReport

MAX_ROWS = 10


def show_propensities(report: PropensityReport, console: Console) -> None:
    """Whether chances are right; how articles overlap; then what to know."""
    table = plain_table(
        *("chance", "visits × articles", "mean chance", "shown"),
        title=f"Are the chances right? {report.estimate}",
    )
    for each in report.calibration:
        table.add_row(
            *(f"{100 * each.low:g}–{100 * each.high:g} %", f"{each.pairs:,}"),
            *(f"{each.said:.2%}", f"{each.shown:.2%}"),
        )
    console.print(table)
    console.print()
    articles = plain_table("article", "offered", "shown", "mean chance", "smallest", "mean weight")
    for one in report.articles[:MAX_ROWS]:
        articles.add_row(
            *(escape(one.article), f"{one.offered:,}", f"{one.shown:,}"),
            *(f"{one.mean_chance:.2%}", f"{one.smallest:.2%}", f"{one.mean_weight:.3f}"),
        )
    console.print(articles)
    console.print()
    wrote = f"Wrote {count(report.events, 'event')} to {report.out}, marked as estimated."
    console.print(wrote, markup=False, soft_wrap=True)
    for caution in report.cautions:
        text = caution[0].upper() + caution[1:] + "."
        console.print(text, style="yellow", markup=False, soft_wrap=True)
    losses = ", ".join(f"{name} {loss:.3f}" for name, loss in report.losses.items())
    more = len(report.articles) - MAX_ROWS
    notes = [
        f"Mean −ln p of what was shown, by models that had not seen it: {losses}. Less is better.",
        f"{report.surprises:.1%} of visits were not shown the likeliest article; "
        f"{report.hardly_shown:.1%} of what pools offered had a chance below 1 %. For a policy "
        f"that shows all articles alike, the log is worth {report.effective_events:,.0f} events.",
        "An estimate is right only if nothing else than user, pool and time decided what was "
        "shown. `topstory evaluate` says how wrong it may be before a conclusion turns.",
    ]
    if more > 0:
        notes.insert(0, f"{count(more, 'more article')} with --json.")
    for note in notes:
        console.print(note, style="dim", markup=False, soft_wrap=True)
