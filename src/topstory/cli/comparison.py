"""Several policies replayed on one log, each from the start, and put side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping

import topstory as ts
from topstory.cli.choosing import Parameters, warm
from topstory.cli.exploring import Explored, Source, explored
from topstory.cli.output.consoles import remarks
from topstory.cli.output.progress import Bar
from topstory.cli.output.warnings import told_once
from topstory.cli.reports.replay import (
    BucketReport,
    Ends,
    LiftReport,
    PolicyReport,
    Report,
    UniformityReport,
    WarmReport,
)
from topstory.evaluation import Bucket, Interval, Lift
from topstory.policies import REGISTRY

BASELINE = "egreedy"


def compare(
    source: Source,
    asked: Mapping[str, Parameters],
    *,
    warm_from: Source | None,
    size: float,
    seed: int,
) -> Report:
    """Replay every policy that was asked for; progress and warnings go to standard error.

    Offsets of warm policies come from `warm_from`, or from the first tenth of the log: then all
    policies are replayed on the rest.
    """
    log, found = source.log, None
    if not len(log):
        raise ValueError(f"{source.name}: the log has no events")
    if any(warm(name) for name in asked):
        found = explored(source, warm_from)
        log = found.log
    offset = found.offset if found else {}
    policies = {
        name: ts.policy(name, seed=seed, **parameters, **({"offset": offset} if warm(name) else {}))
        for name, parameters in asked.items()
    }
    console = remarks()
    results: dict[str, ts.Result] = {}
    with Bar(console, len(policies), len(log)) as bar, told_once(console) as told:
        for name, policy in policies.items():
            bar.say("compiling")
            # One event compiles the kernels, or loads them: the time measured is the replay's own.
            ts.replay(policy, log[:1])
            follow = bar.next(REGISTRY[name].paper)
            results[name] = ts.replay(policy, log, size=size, seed=seed, progress=follow)
    return _report(source.name, log, results, told, found)


def _report(
    name: str,
    log: ts.EventLog,
    results: Mapping[str, ts.Result],
    told: list[str],
    found: Explored | None,
) -> Report:
    first = next(iter(results.values()))
    base = results.get(BASELINE)
    sizes = log.pool_sizes[log.pool]
    tested = first.uniformity
    return Report(
        format="topstory-replay",
        version=1,
        log=name,
        events=len(log),
        kept=first.events,
        lost=None if log.recorded_propensity is None else first.lost,
        articles=len(log.article_ids),
        smallest_pool=int(sizes.min()),
        largest_pool=int(sizes.max()),
        random_ctr=_known(first.random_ctr),
        size=first.size,
        seed=first.seed,
        uniformity=UniformityReport(tested.statistic, tested.degrees_of_freedom, tested.p_value),
        warnings=tuple(told),
        warm=WarmReport(found.source.name, len(found.source.log), len(found.offset))
        if found
        else None,
        policies=tuple(_policy(key, result, base, len(log)) for key, result in results.items()),
    )


def _policy(name: str, result: ts.Result, base: ts.Result | None, events: int) -> PolicyReport:
    numbers = result.policy.model.parameters() | result.policy.explorer.parameters()
    paid = bool(result.random_ctr)  # nothing can be relative to 0
    return PolicyReport(
        policy=name,
        paper=REGISTRY[name].paper,
        parameters={k: float(v) for k, v in numbers.items() if isinstance(v, int | float)},
        deployment=_bucket(result.deployment, paid),
        learning=_bucket(result.learning, paid),
        deployment_lift=None if base is None else _lift(ts.lift(result, base, "deployment")),
        learning_lift=None if base is None else _lift(ts.lift(result, base, "learning")),
        seconds=result.seconds,
        events_per_second=events / result.seconds if result.seconds else None,
    )


def _bucket(bucket: Bucket, paid: bool) -> BucketReport:
    return BucketReport(
        trials=bucket.trials,
        payoff=bucket.payoff,
        ctr=_known(bucket.ctr),
        interval=_ends(bucket.interval),
        relative_ctr=_known(bucket.relative_ctr) if paid else None,
        relative_interval=_ends(bucket.relative_interval),
        weighted_ctr=_known(bucket.weighted_ctr),
        weighted_interval=_ends(bucket.weighted_interval),
        weighted_relative_ctr=_known(bucket.weighted_relative_ctr) if paid else None,
    )


def _lift(lift: Lift) -> LiftReport:
    return LiftReport(_known(lift.value), _ends(lift.interval))


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _ends(interval: Interval) -> Ends:
    known = math.isfinite(interval.low) and math.isfinite(interval.high)
    return (float(interval.low), float(interval.high)) if known else None
