"""Events a second that `ts.train` learns, for each model."""

from __future__ import annotations

from functools import partial
from time import process_time

import numpy as np

import topstory as ts
from benchmarks import replay, traffic
from benchmarks.measuring import interleaved, say
from benchmarks.tables import Section, Table
from topstory.engines import SerialEngine
from topstory.policies.log_learner import learn_log
from topstory.policies.sum_learner import learn_sums

POLICIES = ("ucb", "ucb-warm", "ucb-seg", "linucb-disjoint", "linucb-hybrid")
SUMS = ", as sums"  # `topstory train --engine serial`
TARGETS = {
    "linucb-hybrid": 1.0,
    f"linucb-hybrid{SUMS}": 1.0,
}  # million events a second of a quiet 2.4 GHz core
CHECKED = 2_000  # events that are learned one by one as well


def run(quick: bool) -> Section:
    """Check that a log teaches what its events do one by one, then time it."""
    events = 50_000 if quick else 1_000_000
    log = traffic.build(events)
    policies = {name: replay.make(name, log) for name in POLICIES}
    for name, policy in policies.items():
        say(f"checking {name} against learning one by one")
        check(policy, log[:CHECKED])
    timings = interleaved(
        {
            **{name: partial(_learn, policy, log) for name, policy in policies.items()},
            **{
                f"{name}{SUMS}": partial(_learn_sums, policies[name], log)
                for name in ("linucb-disjoint", "linucb-hybrid")
            },
        },
        3 if quick else 5,
        process_time,  # learning uses one core; what else runs does not count
    )
    table = Table(
        f"Training on {events:,} events, d = 6, 6 article features",
        ("policy", "M events/s", "best", "target", "met"),
        [
            (
                f"`{name}`",
                f"{(rate := events / timing.median / 1e6):.2f}",
                f"{events / timing.best / 1e6:.2f}",
                f"≥ {TARGETS[name]:.0f} M" if name in TARGETS else "",
                ("yes" if rate >= TARGETS[name] else "no") if name in TARGETS else "",
            )
            for name, timing in timings.items()
        ],
    )
    notes = [
        f"Checked before timing: {CHECKED:,} events teach each model the same bits as "
        "`policy.learn` does, one by one.",
        "Seconds are of one core's own work.",
        "As sums: `topstory train --engine serial`, the same policy to 1e-9.",
    ]
    return Section([table], {n: timing.figures(events) for n, timing in timings.items()}, notes)


def check(policy: ts.Policy, log: ts.EventLog) -> None:
    """Raise AssertionError unless both ways to learn give the same bits."""
    whole, single = policy.copy(), policy.copy()
    learn_log(whole, log)
    for article, features in log.articles.items():
        single.add_article(article, features)
    for event in log:
        single.learn(event.user, event.shown, event.payoff)
    expected = single.model.learned()
    for name, array in whole.model.learned().items():
        if not np.array_equal(array, expected[name]):
            raise AssertionError(f"{policy}: {name} differs from learning one by one")


def _learn(policy: ts.Policy, log: ts.EventLog) -> None:
    learn_log(policy.copy(), log)


def _learn_sums(policy: ts.Policy, log: ts.EventLog) -> None:
    learn_sums(policy.copy(), log, None, SerialEngine())
