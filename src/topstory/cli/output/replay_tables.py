"""Replays as tables. Every number comes from the report; nothing is computed here."""

from __future__ import annotations

from rich.console import Console

from topstory.cli.output.consoles import print_json, stdout_console
from topstory.cli.output.numbers import NO_VALUE, count, interval, number, rate
from topstory.cli.output.saving import saved_line
from topstory.cli.output.tables import plain_table
from topstory.cli.output.words import mean_payoff, paid_units
from topstory.cli.reports.replay import (
    FIRST_TENTH,
    BucketReport,
    LiftReport,
    PolicyReport,
    ReplayReport,
)
from topstory.evaluation.comparison import LOGGED
from topstory.policies import REGISTRY
from topstory.policies.entries import listed

WIDE_TABLE = 100  # columns of a comparison with pool-weighted CTRs
BRACKET = "\\["  # not the beginning of a style


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
    if report.saved is not None:
        console.print(f"\n{saved_line(report.saved)}", markup=False, soft_wrap=True)


def _show_one(report: ReplayReport, policy: PolicyReport, console: Console) -> None:
    numbers = listed(policy.parameters)
    table = plain_table(
        *("", mean_payoff(report.binary), "95 % interval", "relative", "95 % interval"),
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
    console.print()
    console.print(_site(report, policy), soft_wrap=True)
    if policy.deployment_lift is not None and policy.policy != report.baseline:
        base = f" ({number(report.logged_ctr, 4)})" if report.logged_ctr is not None else ""
        console.print(
            f"Lift over {_baseline(report)}{base}, in deployment: {_percent(report, policy)} %.",
            markup=False,
            soft_wrap=True,
        )


def _site(report: ReplayReport, policy: PolicyReport) -> str:
    """What exploring costs, what the site earns, and what other days may bring."""
    found, week = policy.exploration, policy.deployment.next_week
    shares = f"{found.learning_share:.0%} of visits learning"
    total = f"{number(found.total_relative_ctr, 3)} {interval(found.total_interval, 2)}".strip()
    cost = f"{number(found.clicks_per_100000, 0)} {interval(found.interval, 0)}".strip()
    another = (
        f"Another week's relative {mean_payoff(report.binary)} in deployment: "
        f"{interval(week, 2)}, from the spread between "
        f"{report.days} days."
        if week is not None
        else "Not enough days to say what another week would bring: that needs five whole days."
    )
    if found.total_relative_ctr is None:
        return f"Nothing can be said of what both buckets earn beside random articles.\n{another}"
    return (
        f"With {shares}, both buckets together earn {total} times as much as random articles, and "
        f"exploring costs {cost} {paid_units(report.binary)} in 100,000 visits.\n{another}"
    )


def _show_several(report: ReplayReport, console: Console) -> None:
    lifted = any(policy.deployment_lift is not None for policy in report.policies)
    wide = console.width >= WIDE_TABLE
    table = plain_table(
        *(f"relative {mean_payoff(report.binary)}", "deployment", "learning"),
        *(("weighted",) if _pools_vary(report) and wide else ()),
        *("total", "cost"),
        *(("lift, %",) if lifted else ()),
    )
    best = _best(report)
    for policy in report.policies:
        sure = policy.deployment_lift is not None and policy.deployment_lift.sure
        lift = _percent(report, policy)
        table.add_row(
            *(policy.paper, _relative(policy.deployment), _relative(policy.learning, True)),
            *((_weighted(policy.deployment)[1],) if _pools_vary(report) and wide else ()),
            number(policy.exploration.total_relative_ctr, 3),
            number(policy.exploration.clicks_per_100000, 0),
            *((lift if sure else f"[dim]{lift.replace('[', BRACKET)}[/dim]",) if lifted else ()),
            style="bold" if policy is best else None,
        )
    console.print(table)
    if best is not None and best.deployment.shrunk_relative_ctr is not None:
        console.print()
        console.print(_best_line(report, best), soft_wrap=True)


def _best(report: ReplayReport) -> PolicyReport | None:
    """The policy that earns most over both buckets, with the luck of the best taken off."""
    known = [p for p in report.policies if not REGISTRY[p.policy].model.needs_log]
    return max(known, key=lambda p: p.exploration.shrunk_total or 0.0, default=None)


def _best_line(report: ReplayReport, best: PolicyReport) -> str:
    found = best.deployment
    earned = f"{number(found.shrunk_relative_ctr, 3)} {interval(found.shrunk_interval, 2)}".strip()
    another = (
        f"another week {interval(found.next_week, 2)}, from the spread between {report.days} days"
        if found.next_week is not None
        else "there are not enough days (five) to say what another week would bring"
    )
    return (
        f"Highest in total: {best.paper}. Being the highest of several is partly luck; with that "
        f"taken off it earns {earned} in deployment, on days like these; {another}."
    )


def _pools_vary(report: ReplayReport) -> bool:
    return report.smallest_pool < report.largest_pool


def _relative(bucket: BucketReport, brief: bool = False) -> str:
    ends = None if brief else bucket.relative_interval
    return f"{number(bucket.relative_ctr, 3)} {interval(ends, 2)}".strip()


def _weighted(bucket: BucketReport) -> tuple[str, str]:
    return number(bucket.weighted_ctr, 4), number(bucket.weighted_relative_ctr, 3)


def _baseline(report: ReplayReport) -> str:
    if report.baseline == LOGGED:
        return "what the log shows"
    return REGISTRY[report.baseline].paper


def _percent(report: ReplayReport, policy: PolicyReport) -> str:
    lift: LiftReport | None = policy.deployment_lift
    if lift is None or lift.value is None or policy.policy == report.baseline:
        return NO_VALUE
    found = lift.simultaneous_interval or lift.interval
    ends = found and (100 * found[0], 100 * found[1])
    return f"{number(100 * lift.value, 1, '+')} {interval(ends, 1, '+')}"


def _notes(report: ReplayReport) -> list[str]:
    seconds = sum(policy.seconds for policy in report.policies)
    replays = len(report.policies) * report.seeds
    passed = rate(replays * report.events / seconds) if seconds else NO_VALUE
    mean = mean_payoff(report.binary)
    notes = [
        f"{count(report.events, 'event')}, {count(report.seeds, 'seed')}, in {seconds:.2f} s, "
        f"{passed}. Relative {mean}s are divided by the random policy's {mean}, "
        f"{number(report.random_ctr, 4)}"
        + (": there are none unless that is above 0." if not (report.random_ctr or 0) > 0 else ".")
    ]
    first = report.policies[0].deployment
    notes.append(
        f"95 % intervals are over the {report.intervals}. They are about the days of this log: "
        "other days differ more."
        if not first.these_hours
        else f"95 % intervals are over the {report.intervals}. They are about the hours of this "
        "log alone, which is too short to show how much others differ: that takes a week or more."
    )
    if any(each.too_short for p in report.policies for each in (p.deployment, p.learning)):
        days = "more" if first.days_needed is None else f"{first.days_needed} days or more"
        notes.append(
            f"Where the interval of a {mean} is missing, it changes so slowly that this log is too "
            f"short to say how sure it is: that takes a log of {days}. Relative ones suffer less."
        )
    if any(p.deployment_lift is not None and p.deployment_lift.too_short for p in report.policies):
        notes.append(
            "Where the interval of a lift is missing, it changes so slowly that this log is too "
            "short to say how sure it is: take a log of more days."
        )
    notes += _path_notes(report)
    if len(report.policies) > 1:
        share = report.policies[0].exploration.learning_share
        notes.append(
            f"Total: both buckets with {share:.0%} of visits learning (--learning-share). Cost: "
            f"{paid_units(report.binary)} in 100,000 visits that exploring loses there."
        )
        if report.policies[0].deployment_lift is not None:
            logged = report.logged_ctr
            base = "" if logged is None else f" ({mean} {number(logged, 4)})"
            notes.append(
                f"Lifts are over {_baseline(report)}{base}, in the deployment bucket; their "
                "intervals hold for all policies together. Those that are not sure are dimmed."
            )
    if _pools_vary(report):
        notes.append(
            f"Pools have {report.smallest_pool} to {report.largest_pool} articles. Replay retains "
            f"events with small pools more often; pool-weighted {mean}s correct for that."
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
            f"events; that biases a {mean} by at most {number(report.bias_bound, 4)}."
        )
    if report.size < 1:
        notes.append(f"Policies learned from {report.size:.1%} of the retained events.")
    if report.warm is not None:
        notes.append(_warm_note(report))
    return notes


def _path_notes(report: ReplayReport) -> list[str]:
    """What intervals over learning paths cannot say."""
    found = []
    apart = [
        f"{policy.paper} ({number(ends[0], 2)} to {number(ends[1], 2)})"
        for policy in report.policies
        if (ends := policy.deployment.path_ends) is not None
    ]
    if apart:
        found.append(
            f"The learning paths of {', '.join(apart)} disagree: on some a policy finds the best "
            "articles, on others it does not. On a site you get one path. A larger α or ε makes "
            "them agree."
        )
    if report.too_few_seeds:
        found.append(
            "The articles hardly change, so what a path misses at first it may miss to the end. "
            f"{count(report.seeds, 'seed')} cannot show how often that happens, and intervals may "
            "be too narrow: --repeats 20 tells."
        )
    return found


def _warm_note(report: ReplayReport) -> str:
    warm = report.warm
    assert warm is not None
    what, offsets = "The prior was", ""
    if warm.articles:
        what = "Offsets of warm policies were"
        offsets = f"; {warm.articles:,} of {count(report.articles, 'article')} have an offset"
    if warm.source != FIRST_TENTH:
        return f"{what} fitted on {warm.source} ({count(warm.events, 'event')}){offsets}."
    return (
        f"{what} fitted on the log's first tenth "
        f"({count(warm.events, 'event')}), and all policies were replayed on the remaining "
        f"{report.events:,}{offsets}. Use --warm-from to fit on another log."
    )
