"""Laws that the simulation of a fleet must keep, whatever its numbers are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.capacity.costs import Costs
from benchmarks.capacity.events import Cores, LogDisk, Simulation
from benchmarks.capacity.reckoning import BUSY, most, need
from benchmarks.capacity.running import simulate
from benchmarks.capacity.shard import Shard
from numpy.typing import NDArray


def queued(load: float, count: int, seed: int) -> tuple[NDArray[np.float64], float, float]:
    """Of one core with Poisson arrivals and work of 1 each: times in it, its end, its work."""
    simulation = Simulation()
    core, random = Cores(simulation, 1), np.random.default_rng(seed)
    arrivals = np.cumsum(random.exponential(1 / load, count))
    took = np.zeros(count)

    def arrive(place: int) -> None:
        def done() -> None:
            took[place] = simulation.now - arrivals[place]

        core.use(1.0, done)

    for place, at in enumerate(arrivals.tolist()):
        simulation.at(at, lambda place=place: arrive(place))  # type: ignore[misc]
    simulation.run(1e9)
    return took, float(arrivals[-1]), core.busy


def test_one_core_waits_as_pollaczek_and_khinchine_say() -> None:
    """Mean of 10 runs of 5,000; four standard errors over runs: fails once in some 1,000 seeds."""
    load = 0.7
    means = [queued(load, 5_000, seed)[0].mean() for seed in range(10)]
    wanted = 1 + load / (2 * (1 - load))
    assert abs(np.mean(means) - wanted) < 4 * np.std(means, ddof=1) / 10**0.5
    _, end, busy = queued(load, 5_000, 0)
    assert busy == pytest.approx(5_000)
    assert busy / end == pytest.approx(load, rel=0.06)  # four standard deviations of the arrivals


def test_a_flush_takes_all_that_waits() -> None:
    simulation, ended = Simulation(), []
    disk = LogDisk(simulation, 1.0, 1_000.0)
    for at in (0.0, 0.1, 0.2, 0.9):
        simulation.at(at, lambda at=at: disk.commit(500.0, lambda: ended.append(at)))  # type: ignore[misc]
    simulation.run(1.5)
    assert ended == [0.0]
    simulation.run(10.0)
    assert ended == [0.0, 0.1, 0.2, 0.9]
    assert (disk.flushes, disk.commits, disk.written) == (2, 4, 2_000.0)
    assert disk.busy == pytest.approx(1.5 + 2.5)  # the second one has three


def shard(seconds: float = 3.0, rate: float = 4_000.0) -> tuple[Simulation, Shard]:
    simulation = Simulation()
    made = Shard(simulation, Costs(), rate, 0.2, 2, 4, seconds, seed=1)
    return simulation, made


def test_nothing_is_lost_and_nothing_is_made() -> None:
    """At every moment: arrived = waiting + answered, and committed = learned + still to learn."""
    simulation, made = shard()
    for moment in np.linspace(0.1, 3.0, 7):
        simulation.run(float(moment))
        for front in made.fronts:
            known = ~np.isnan(front.answered)
            assert (front.answered[known] >= front.arrivals[known]).all()
            assert not known[front.arrivals > moment].any()
            assert (np.diff(np.flatnonzero(known)) == 1).all()  # in order, none skipped
        committed = sum(int((~np.isnan(front.answered)).sum()) for front in made.fronts)
        assert made.learner.learned + made.learner.waiting <= committed
    simulation.run(10.0)  # long after the last arrival
    arrived = sum(len(front.arrivals) for front in made.fronts)
    assert all(not np.isnan(front.answered).any() for front in made.fronts)
    assert made.learner.learned == arrived
    payoffs = sum(int(front._payoffs[-1]) for front in made.fronts)
    assert sum(count for _, count in made.learner.effects) == payoffs


def test_littles_law() -> None:
    """The mean number of requests in the system is their rate times their mean time in it."""
    simulation, made = shard()
    simulation.run(10.0)
    for front in made.fronts:
        moments = np.linspace(0.0, 3.0, 20_001)
        inside = np.searchsorted(front.arrivals, moments, "right") - np.searchsorted(
            np.sort(front.answered), moments, "right"
        )
        rate, wait = len(front.arrivals) / 3.0, (front.answered - front.arrivals).mean()
        assert inside.mean() == pytest.approx(rate * wait, rel=0.02)


def test_how_busy_cores_are_follows_from_the_costs() -> None:
    """Poisson counts of 14,400 requests: 4 standard deviations are 3.3 %."""
    costs, rate, payoffs, seconds = Costs(), 4_000.0, 0.2, 3.0
    found = simulate(costs, 1, rate, payoffs, 2, 4, seconds, seed=2)
    assert found.fronts == pytest.approx(rate * costs.front(1, payoffs) / 2, rel=0.04)
    alone = (1 - costs.fold_in_database) * rate * costs.folding(1, payoffs)
    assert alone < found.learners < alone + costs.model / costs.publish + 0.01
    least = rate * costs.in_database(1, payoffs) / 4
    assert least * 0.96 < found.databases
    assert found.disks < 1


def test_too_much_is_answered_at_the_rate_of_the_slowest() -> None:
    costs = replace(Costs(), front_decision=1e-3)
    found = simulate(costs, 1, 3_000.0, 0.0, 2, 4, 3.0, seed=3)
    assert found.throughput == pytest.approx(2_000, rel=0.05)
    assert found.fronts == pytest.approx(1.0, abs=0.01)
    slow = replace(Costs(), fold_decision=1e-3, fold_payoff=1e-3)
    found = simulate(slow, 1, 3_000.0, 0.0, 2, 4, 3.0, seed=3)
    assert found.throughput == pytest.approx(3_000, rel=0.05)  # the learner does not hold them up
    assert found.learned < 1_100 * 3  # but it falls behind
    assert found.most_waiting > 3_000


def test_the_same_seed_is_the_same_fleet() -> None:
    one, again = (simulate(Costs(), 2, 4_000.0, 0.1, 2, 4, 1.0, seed=4) for _ in range(2))
    assert one == again
    assert one != simulate(Costs(), 2, 4_000.0, 0.1, 2, 4, 1.0, seed=5)


def test_what_is_reckoned_is_what_a_rate_costs() -> None:
    costs = Costs()
    ten = need(costs, 10_000, 0.1)
    hundred = need(costs, 1_000_000, 0.1)
    assert ten.fronts == 2  # one may fail
    work = 1_000_000 * costs.front(1, 0.1)
    assert work / hundred.fronts <= BUSY < work / (hundred.fronts - 1)
    assert hundred.log == pytest.approx(100 * ten.log)
    assert hundred.learners * most(costs, 0.1) >= 1_000_000
    assert (hundred.learners - 1) * most(costs, 0.1) < 1_000_000
    assert most(costs, 0.0) == pytest.approx(BUSY * 59_602)
