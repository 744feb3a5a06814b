"""Runs shards side by side, and says what came of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.capacity.costs import Costs
from benchmarks.capacity.events import Simulation
from benchmarks.capacity.shard import Shard


class Outcome(NamedTuple):
    """Of all shards, after the warm-up."""

    shards: int
    arrived: int
    answered: int
    learned: int  # rows, from the beginning
    taken_in: int  # rows that were committed, from the beginning
    throughput: float  # answers a second
    p50: float  # seconds from arrival to answer
    p99: float
    effect_p50: float  # seconds from a payoff's answer to every front end's model
    effect_p99: float
    fronts: float  # how busy, 0 to 1
    databases: float
    learners: float
    disks: float
    commits: float  # in one flush
    most_waiting: int  # rows in one inbox


def simulate(
    costs: Costs,
    shards: int,
    rate: float,
    payoffs: float,
    fronts: int,
    database_cores: int,
    seconds: float,
    seed: int = 0,
    shared: int | None = None,
    warm_up: float = 0.5,
) -> Outcome:
    """So many shards which share the rate (decisions a second), each with so many front ends."""
    simulation = Simulation()
    made = [
        Shard(
            *(simulation, costs, rate / shards, payoffs, fronts, database_cores, seconds),
            *(seed + 1_000 * number, shared),
        )
        for number in range(shards)
    ]
    simulation.run(seconds)
    waits, answered, arrived, taken = [], 0, 0, 0
    for shard in made:
        for front in shard.fronts:
            late = front.arrivals >= warm_up
            took = (front.answered - front.arrivals)[late]
            waits.append(took[~np.isnan(took)])
            arrived += int(late.sum())
            taken += int((~np.isnan(front.answered)).sum())
            answered += int((front.answered >= warm_up).sum())
    took = np.concatenate(waits)
    effects = [each for shard in made for each in shard.learner.effects]
    effect = np.repeat([each for each, _ in effects], [count for _, count in effects])
    p50, p99 = np.quantile(took, [0.5, 0.99]) if len(took) else (np.nan, np.nan)
    soon, late_effect = np.quantile(effect, [0.5, 0.99]) if len(effect) else (np.nan, np.nan)
    disks = [shard.primary.disk for shard in made]
    return Outcome(
        shards,
        arrived,
        len(took),
        sum(shard.learner.learned for shard in made),
        taken,
        answered / (seconds - warm_up),
        *(float(p50), float(p99), float(soon), float(late_effect)),
        sum(f.core.busy for shard in made for f in shard.fronts) / (shards * fronts * seconds),
        sum(shard.primary.cores.busy for shard in made) / (shards * database_cores * seconds),
        sum(shard.learner.core.busy for shard in made) / (shards * seconds),
        sum(disk.busy for disk in disks) / (shards * seconds),
        sum(disk.commits for disk in disks) / max(1, sum(disk.flushes for disk in disks)),
        max(shard.learner.most_waiting for shard in made),
    )
