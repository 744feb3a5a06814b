"""Answers, drawn for people. Every number comes from the records; none is worked out here."""

from __future__ import annotations

import sys

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from topstory.cli.output.numbers import NOTHING, count, interval, number, rate
from topstory.cli.reports.replay import BucketReport, LiftReport, PolicyReport, Report

WIDE = 90  # columns that a comparison takes where pool sizes vary


def plain_table(*columns: str, title: str | None = None) -> Table:
    """A table with its first column left and the others right, and rules only where they help."""
    table = Table(title=title, box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 0, 0, 1))
    table.pad_edge, table.title_justify, table.title_style = False, "left", "bold"
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    return table


def show_warning(message: str, console: Console, title: str = "not uniform") -> None:
    """Loudly, on standard error: a panel where that is a terminal, one line where it is a file."""
    if console.is_terminal:
        text = Text(message, style="bold yellow")
        console.print(Panel(text, title=title, border_style="bold red"))
    else:
        print(f"WARNING: {message}", file=sys.stderr)


def show_report(report: Report, console: Console) -> None:
    """One policy in full, or several side by side; then what there is to know about them."""
    if len(report.policies) == 1:
        _show_one(report, report.policies[0], console)
    else:
        _show_several(report, console)
    console.print()
    for note in _notes(report):
        console.print(note, style="dim", soft_wrap=True)


def _show_one(report: Report, policy: PolicyReport, console: Console) -> None:
    numbers = ", ".join(f"{name} {value:g}" for name, value in policy.parameters.items())
    table = plain_table(
        *("", "CTR", "95 % interval", "relative", "95 % interval"),
        *(("pool-weighted", "relative") if _pools_vary(report) else ()),
        "trials",
        title=policy.paper + (f" ({numbers})" if numbers else ""),
    )
    for name, bucket in (("deployment", policy.deployment), ("learning", policy.learning)):
        table.add_row(
            *(name, number(bucket.ctr, 4), interval(bucket.interval, 4)),
            *(number(bucket.relative_ctr, 3), interval(bucket.relative_interval, 2)),
            *(_weighted(bucket) if _pools_vary(report) else ()),
            f"{bucket.trials:,}",
        )
    console.print(table)


def _show_several(report: Report, console: Console) -> None:
    lifted = any(policy.deployment_lift is not None for policy in report.policies)
    table = plain_table(
        *("relative CTR", "deployment", "learning"),
        *(("weighted",) if _pools_vary(report) else ()),
        *(("lift, %",) if lifted else ()),
    )
    brief = _pools_vary(report) and console.width < WIDE
    best = max(
        (p for p in report.policies if p.policy != "omniscient"),
        key=lambda p: p.deployment.relative_ctr or 0.0,
    )
    for policy in report.policies:
        table.add_row(
            *(policy.paper, _relative(policy.deployment), _relative(policy.learning, brief)),
            *((_weighted(policy.deployment)[1],) if _pools_vary(report) else ()),
            *((_percent(policy),) if lifted else ()),
            style="bold" if policy is best else None,
        )
    console.print(table)


def _pools_vary(report: Report) -> bool:
    return report.smallest_pool < report.largest_pool


def _relative(bucket: BucketReport, brief: bool = False) -> str:
    ends = None if brief else bucket.relative_interval
    return f"{number(bucket.relative_ctr, 3)} {interval(ends, 2)}".strip()


def _weighted(bucket: BucketReport) -> tuple[str, str]:
    return number(bucket.weighted_ctr, 4), number(bucket.weighted_relative_ctr, 3)


def _percent(policy: PolicyReport) -> str:
    lift: LiftReport | None = policy.deployment_lift
    if lift is None or lift.value is None or policy.policy == "egreedy":
        return NOTHING
    ends = lift.interval and (100 * lift.interval[0], 100 * lift.interval[1])
    return f"{number(100 * lift.value, 1, '+')} {interval(ends, 1, '+')}"


def _notes(report: Report) -> list[str]:
    seconds = sum(policy.seconds for policy in report.policies)
    replays = len(report.policies)
    passed = rate(replays * report.events / seconds) if seconds else NOTHING
    notes = [
        f"{count(report.events, 'event')}; random's CTR {number(report.random_ctr, 4)}, which "
        f"relative CTRs divide by; {seconds:.2f} s, {passed}"
    ]
    if replays > 1:
        lifted = report.policies[0].deployment_lift is not None
        notes.append(
            "In brackets: 95 % intervals."
            + (" The lift is over ε-greedy, in the deployment bucket." if lifted else "")
        )
    if _pools_vary(report):
        notes.append(
            f"Pools hold {report.smallest_pool} to {report.largest_pool} articles, and small ones "
            "are retained more often; pool-weighted, a CTR makes up for that."
        )
    if report.lost is not None:
        notes.append(
            f"Rejection sampling by the recorded propensities left {report.kept:,} of them "
            f"and lost {report.lost:.1%}."
        )
    if report.size < 1:
        notes.append(f"Learned from {report.size:.1%} of the retained events.")
    if report.warm is not None:
        notes.append(_warm_note(report))
    return notes


def _warm_note(report: Report) -> str:
    warm = report.warm
    assert warm is not None
    offsets = f"{warm.articles:,} of {count(report.articles, 'article')} have an offset"
    if warm.source != "first tenth":
        return (
            f"Offsets of warm policies were fitted on {warm.source} "
            f"({count(warm.events, 'event')}); {offsets}."
        )
    return (
        f"Offsets of warm policies were fitted on the log's first tenth "
        f"({count(warm.events, 'event')}), so all policies were replayed on the remaining "
        f"{report.events:,}; {offsets}. --warm-from fits them on another log."
    )
