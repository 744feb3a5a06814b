"""`python -m benchmarks capacity`: measured, reckoned, and simulated; each is called what it is."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from math import ceil
from pathlib import Path

from benchmarks.capacity.costs import Costs
from benchmarks.capacity.database import DatabaseFacts, measured
from benchmarks.capacity.reckoning import BUSY, Need, most, need
from benchmarks.capacity.running import Outcome, simulate
from benchmarks.capacity.steady import Size, steady
from benchmarks.fleet import fresh, postgres
from benchmarks.measuring import say
from benchmarks.tables import Section, Table

RATES = (10_000, 100_000, 1_000_000)
PAYOFFS = 0.1  # for each decision
# python -m benchmarks --quick fleet, one front end, 64 connections, all on two cores.
MEASURED = {"decisions": 16_590, "payoffs": 19_854}
MEASURED_EFFECT = (0.010, 0.015)  # p50 and p99 with nothing else to do
MEASURED_FRONT = (30e-6, 24e-6)
DRIVER = 21e-6  # python -m benchmarks workers: 0.27 cores at 12,961 decisions a second


def run(quick: bool) -> Section:
    """What a record takes; whether the simulation is right; what rates need; what they would do."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="capacity-")))
        say("measuring a database")
        server = stack.enter_context(postgres())
        facts = measured(
            folder / "database", fresh(server, "capacity"), server, 10 if quick else 80
        )
        say("days of traffic")
        days, batches = (4, 2) if quick else (20, 20)
        sizes = steady(folder / "steady", fresh(server, "steady"), days, batches)
    say("checking the simulation")
    checks = _checks(facts)
    needs = [need(facts.costs, rate, PAYOFFS) for rate in RATES]
    outcomes = []
    for each in needs:
        say(f"simulating {each.rate:,.0f} decisions a second")
        outcomes.append((each, simulated(facts.costs, each, *((1.5, 2) if quick else (3.0,)))))
    say("")
    largest = needs[-1]
    figures = {
        "facts": {**facts._asdict(), "costs": vars(facts.costs)},
        "sizes": [each._asdict() for each in sizes],
        "checks": checks,
        "needs": [each._asdict() for each in needs],
        "simulated": [found._asdict() for _, found in outcomes],
    }
    tables = [
        _facts(facts),
        Table(
            "Is the simulation right? The fleet on two cores, as it was measured",
            ("", "measured", "simulated", "simulated / measured"),
            [(name, _three(was), _three(now), f"{now / was:.2f}") for name, was, now in checks],
        ),
        _needs(needs, facts),
        _outcomes(outcomes),
    ]
    notes = [
        f"Reckoned: a payoff for {PAYOFFS:.0%} of decisions; cores and learners at most {BUSY:.0%} "
        "busy; front ends at 54 and 45 µs for a request, folding at 59,602 decisions and 77,045 "
        "payoffs a second; sources of all numbers are in benchmarks/capacity/costs.py. A learner "
        f"takes {most(facts.costs, PAYOFFS):,.0f} decisions a second, and each has a database.",
        "Simulated: Poisson arrivals, shards that share the rate evenly, a flush of "
        f"{facts.costs.flush * 1e3:g} ms, {facts.costs.disk / 1e6:g} MB/s of log, "
        f"{facts.costs.hop * 1e3:g} ms of network one way: assumed, not measured. No such fleet "
        "was run, and nothing fails in it.",
        f"At {largest.rate:,} decisions a second the largest pool may have "
        f"{largest.rate / largest.learners:,.0f} of them: what one learner has.",
    ]
    scaling = Section(tables[1:], {}, notes)
    return Section([tables[0], _sizes(sizes)], figures, [], {"../operations/scaling.md": scaling})


def _facts(facts: DatabaseFacts) -> Table:
    costs = facts.costs
    return Table(
        "What a record takes of the database",
        ("", "decision", "payoff"),
        [
            ("log bytes, from the front end", *_bytes(costs.decision_bytes, costs.payoff_bytes)),
            (
                "log bytes, from the learner",
                *_bytes(costs.folded_decision_bytes, costs.folded_payoff_bytes),
            ),
            ("bytes in the inbox, mean of both", *_bytes(facts.inbox_row, facts.inbox_row)),
            ("bytes in the journal, mean of both", *_bytes(facts.journal_row, facts.journal_row)),
            ("CPU µs of a batch, beside its rows", f"{1e6 * costs.batch:.0f}", ""),
            ("ms for a batch of one, at least", f"{1e3 * facts.alone:.2f}", ""),
        ],
    )


def _sizes(sizes: list[Size]) -> Table:
    shown = [sizes[place] for place in sorted({1, len(sizes) // 2, len(sizes) - 1})]
    return Table(
        "The database under steady traffic, an hour's window, archive_days = 1; a day is set",
        ("days", *(f"{each.days}" for each in shown)),
        [
            ("rows that came in", *(f"{each.rows:,}" for each in shown)),
            ("rows in the inbox", *(f"{each.inbox_rows:,}" for each in shown)),
            ("rows in the journal", *(f"{each.journal_rows:,}" for each in shown)),
            ("MB of the inbox", *(f"{each.inbox / 1e6:.1f}" for each in shown)),
            ("MB of the journal", *(f"{each.journal / 1e6:.1f}" for each in shown)),
        ],
    )


def _bytes(*values: float) -> tuple[str, ...]:
    return tuple(f"{each:,.0f}" for each in values)


def _checks(facts: DatabaseFacts) -> list[tuple[str, float, float]]:
    """The measured fleet: everything on two cores, a local disk, no network."""
    front, paid = (each + DRIVER for each in MEASURED_FRONT)
    small = replace(
        facts.costs,
        front_decision=front,
        front_payoff=paid,
        flush=max(1e-5, facts.alone - facts.costs.batch),
        hop=0.0,
        batch_rows=64,  # connections
    )
    found = []
    for kind, share in (("decisions", 0.0), ("payoffs", 1e6)):
        rate = 3.0 * MEASURED[kind]
        out = simulate(small, 1, rate / (1 + share), share, 1, 2, 2.0, shared=2)
        found.append((f"{kind}/s of one front end", float(MEASURED[kind]), out.throughput))
    # So seldom that hardly two payoffs wait for one model: they were measured one by one.
    idle = simulate(small, 1, 0.1, 1.0, 2, 2, 1_000.0, shared=2)
    for name, was, now in zip(
        ("p50", "p99"), MEASURED_EFFECT, (idle.effect_p50, idle.effect_p99), strict=True
    ):
        found.append((f"ms from payoff to effect, {name}", was * 1e3, now * 1e3))
    return found


def simulated(costs: Costs, wanted: Need, seconds: float, most_shards: int = 1_000) -> Outcome:
    """The shards that a rate needs, or some of them: they share nothing."""
    shards = min(wanted.learners, most_shards)
    rate = wanted.rate * shards / wanted.learners
    cores = max(2, ceil(wanted.database_cores / wanted.learners / BUSY))
    fronts = -(-wanted.fronts // wanted.learners)
    return simulate(costs, shards, rate, PAYOFFS, fronts, cores, seconds)


def _needs(needs: list[Need], facts: DatabaseFacts) -> Table:
    rows = [
        ("cores for front ends", *(f"{each.fronts:,}" for each in needs)),
        ("learners, databases, and pools at least", *(f"{each.learners:,}" for each in needs)),
        ("busy cores of databases, in all", *(f"{each.database_cores:.1f}" for each in needs)),
        ("the same in each", *(f"{each.database_cores / each.learners:.1f}" for each in needs)),
        ("MB/s of log in each", *(f"{each.log / each.learners / 1e6:.0f}" for each in needs)),
        (
            "GB a day in all journals, before it is archived",
            *(f"{each.rows * facts.journal_row / 1e9:,.0f}" for each in needs),
        ),
        (
            "GB in each inbox, with a window of an hour",
            *(
                f"{each.rows / 86_400 * 4_200 * facts.inbox_row / each.learners / 1e9:,.1f}"
                for each in needs
            ),
        ),
    ]
    return Table(
        "Reckoned: what a rate needs",
        ("decisions a second", *(f"{each.rate:,}" for each in needs)),
        rows,
    )


def _outcomes(outcomes: list[tuple[Need, Outcome]]) -> Table:
    found = [each for _, each in outcomes]
    return Table(
        "Simulated: each with the machines that were reckoned",
        ("decisions a second", *(f"{each.rate:,}" for each, _ in outcomes)),
        [
            ("shards", *(f"{each.learners}" for each, _ in outcomes)),
            ("of them simulated", *(f"{each.shards}" for each in found)),
            ("their answers/s, payoffs too", *(f"{each.throughput:,.0f}" for each in found)),
            ("ms to an answer, p50", *(f"{each.p50 * 1e3:.1f}" for each in found)),
            ("ms to an answer, p99", *(f"{each.p99 * 1e3:.1f}" for each in found)),
            ("ms from payoff to effect, p50", *(f"{each.effect_p50 * 1e3:.0f}" for each in found)),
            ("ms from payoff to effect, p99", *(f"{each.effect_p99 * 1e3:.0f}" for each in found)),
            ("front ends busy", *(f"{each.fronts:.0%}" for each in found)),
            ("database cores busy", *(f"{each.databases:.0%}" for each in found)),
            ("learners' own work", *(f"{each.learners:.0%}" for each in found)),
            ("disks busy", *(f"{each.disks:.0%}" for each in found)),
            ("commits in a flush", *(f"{each.commits:.1f}" for each in found)),
            ("rows waiting for a learner, at most", *(f"{e.most_waiting:,}" for e in found)),
        ],
    )


def _three(number: float) -> str:
    """In three digits, or more if it is large."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
