"""Replays as tables. Every number comes from the report; nothing is computed here."""

from __future__ import annotations

from rich.console import Console

from topstory.cli.output.consoles import print_json, stdout_console
from topstory.cli.output.numbers import NO_VALUE, count, interval, number, rate
from topstory.cli.output.tables import plain_table
from topstory.cli.reports.replay import (
    FIRST_TENTH,
    BucketReport,
    LiftReport,
    PolicyReport,
    ReplayReport,
)
from topstory.evaluation.comparison import BASELINE
from topstory.policies import REGISTRY

WIDE_TABLE = 90  # columns of a comparison with pool-weighted CTRs


def print_replays(report: ReplayReport, json: bool) -> None:
    """Print replays on standard output, as JSON or as a table."""
    if json:
        print_json(report)
    else:
        show_replays(report, stdout_console())


def show_replays(report: ReplayReport, console: Console) -> None:
    """One policy in detail, or several side by side; then notes."""
    if len(report.policies) == 1:
        _show_one(report, report.policies[0], console)
    else:
        _show_several(report, console)
    console.print()
    for note in _notes(report):
        console.print(note, style="dim", soft_wrap=True)


def _show_one(report: ReplayReport, policy: PolicyReport, console: Console) -> None:
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


def _show_several(report: ReplayReport, console: Console) -> None:
    lifted = any(policy.deployment_lift is not None for policy in report.policies)
    table = plain_table(
        *("relative CTR", "deployment", "learning"),
        *(("weighted",) if _pools_vary(report) else ()),
        *(("lift, %",) if lifted else ()),
    )
    brief = _pools_vary(report) and console.width < WIDE_TABLE
    best = max(
        (p for p in report.policies if not REGISTRY[p.policy].model.needs_log),
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


def _pools_vary(report: ReplayReport) -> bool:
    return report.smallest_pool < report.largest_pool


def _relative(bucket: BucketReport, brief: bool = False) -> str:
    ends = None if brief else bucket.relative_interval
    return f"{number(bucket.relative_ctr, 3)} {interval(ends, 2)}".strip()


def _weighted(bucket: BucketReport) -> tuple[str, str]:
    return number(bucket.weighted_ctr, 4), number(bucket.weighted_relative_ctr, 3)


def _percent(policy: PolicyReport) -> str:
    lift: LiftReport | None = policy.deployment_lift
    if lift is None or lift.value is None or policy.policy == BASELINE:
        return NO_VALUE
    ends = lift.interval and (100 * lift.interval[0], 100 * lift.interval[1])
    return f"{number(100 * lift.value, 1, '+')} {interval(ends, 1, '+')}"


def _notes(report: ReplayReport) -> list[str]:
    seconds = sum(policy.seconds for policy in report.policies)
    replays = len(report.policies)
    passed = rate(replays * report.events / seconds) if seconds else NO_VALUE
    notes = [
        f"{count(report.events, 'event')} in {seconds:.2f} s, {passed}. Relative CTRs are divided "
        f"by the random policy's CTR, {number(report.random_ctr, 4)}."
    ]
    if replays > 1:
        lifted = report.policies[0].deployment_lift is not None
        notes.append(
            "Brackets hold 95 % intervals."
            + (
                f" Lifts are over {REGISTRY[BASELINE].paper}, in the deployment bucket."
                if lifted
                else ""
            )
        )
    if _pools_vary(report):
        notes.append(
            f"Pools have {report.smallest_pool} to {report.largest_pool} articles. Replay retains "
            "events with small pools more often; pool-weighted CTRs correct for that."
        )
    if report.lost is not None:
        notes.append(
            f"Rejection sampling by the recorded propensities kept {report.kept:,} events and "
            f"lost {report.lost:.1%}."
        )
    if report.capped:
        notes.append(
            f"{report.capped:.2%} of the events have propensities far below all others. "
            "Rejection sampling keeps each of them once instead of rejecting nearly all other "
            f"events; that biases a CTR by at most {number(report.bias_bound, 4)}."
        )
    if report.size < 1:
        notes.append(f"Policies learned from {report.size:.1%} of the retained events.")
    if report.warm is not None:
        notes.append(_warm_note(report))
    return notes


def _warm_note(report: ReplayReport) -> str:
    warm = report.warm
    assert warm is not None
    offsets = f"{warm.articles:,} of {count(report.articles, 'article')} have an offset"
    if warm.source != FIRST_TENTH:
        return (
            f"Offsets of warm policies were fitted on {warm.source} "
            f"({count(warm.events, 'event')}); {offsets}."
        )
    return (
        f"Offsets of warm policies were fitted on the log's first tenth "
        f"({count(warm.events, 'event')}), and all policies were replayed on the remaining "
        f"{report.events:,}; {offsets}. Use --warm-from to fit them on another log."
    )
