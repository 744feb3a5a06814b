"""Faults, with real processes and real databases: what was acknowledged counts once.

`make chaos` runs the long version: all faults in random order, for ten minutes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from tests.serving.fleet.databases import Databases
from tests.serving.fleet.linearizability import is_linearizable
from tests.serving.fleet.machines import Fleet, Machine, Visitors, count_paid
from tests.serving.fleet.test_pipeline import folded
from tests.serving.fleet.test_published import folded_checksums
from tests.serving.journal.postgres.test_takeover import hung
from tests.serving.making import config
from tests.serving.processes import eventually

import topstory as ts
from topstory.serving.api.errors import ApiError
from topstory.serving.fleet.calls import CALL_SECONDS
from topstory.serving.journal.connect import journal_of
from topstory.serving.journal.records import Cut, Decided, Paid
from topstory.serving.security.decision_ids import decision_number
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.upkeep.verification import verify

SECONDS = float(os.environ.get("CHAOS_SECONDS", "20"))  # `make chaos` sets 600
SEED = int(os.environ.get("CHAOS_SEED", "4"))
D = 4
LONGEST_TIMEOUT = CALL_SECONDS  # of a front end
FAULT_SECONDS = 5.5  # that one takes, about


class Faults:
    """What can happen to a fleet. Each returns once it is over, and another machine learns."""

    def __init__(self, fleet: Fleet, databases: Databases | None = None) -> None:
        """`databases`: without them, only what happens to one server that others use, too."""
        self.fleet, self._databases = fleet, databases
        self.takeovers: list[float] = []  # seconds

    def _await_takeover(self, before: int, since: float) -> None:
        eventually(lambda: self.fleet.epoch() > before, 60)
        self.takeovers.append(time.monotonic() - since)

    def learner_killed(self) -> None:
        owner, before = self.fleet.await_candidate(), self.fleet.epoch()
        since = time.monotonic()
        os.kill(owner.learner(), signal.SIGKILL)
        self._await_takeover(before, since)
        if owner.role == "learner":
            owner.end(signal.SIGKILL)
            owner.start()

    def learner_paused(self) -> None:
        """For longer than its lease; when it wakes up, it finds itself replaced."""
        owner, before = self.fleet.await_candidate(), self.fleet.epoch()
        pid, since = owner.learner(), time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        self._await_takeover(before, since)
        os.kill(pid, signal.SIGCONT)
        eventually(lambda: "no longer learns" in owner.errors(), 60)

    def learner_cut_off(self) -> None:
        owner, before = self.fleet.await_candidate(), self.fleet.epoch()
        since = time.monotonic()
        owner.proxy.stall()
        self._await_takeover(before, since)
        owner.proxy.mend()

    def front_cut_off(self) -> None:
        front = self.fleet.fronts[-1]
        front.proxy.cut()
        eventually(lambda: not ready(front), 30)
        front.proxy.mend()
        eventually(lambda: ready(front), 30)

    def front_killed(self) -> None:
        front = self.fleet.fronts[-1]
        front.end(signal.SIGKILL)
        front.start()

    def front_paused(self) -> None:
        """For longer than any of its own timeouts, or of the database's."""
        front = self.fleet.fronts[-1]
        assert front.process is not None
        front.process.send_signal(signal.SIGSTOP)
        time.sleep(LONGEST_TIMEOUT + 1)
        front.process.send_signal(signal.SIGCONT)
        eventually(lambda: ready(front), 30)

    def database_crashes(self) -> None:
        """It ends all sessions, and recovers."""
        hung(self.fleet.url)[-1].kill()
        self._await_ready()

    def database_slow(self) -> None:
        """For every machine each answer takes a fifth of a second longer, and each question."""
        for each in self.fleet.machines:
            each.proxy.delay = 0.1
        time.sleep(4)
        for each in self.fleet.machines:
            each.proxy.delay = 0.0
        self._await_ready()

    def _await_ready(self) -> None:
        eventually(lambda: all(ready(front) for front in self.fleet.fronts), 90)

    def database_hangs(self) -> None:
        processes = hung(self.fleet.url)
        for process in processes:
            process.suspend()
        try:
            eventually(lambda: not any(ready(front) for front in self.fleet.fronts), 30)
        finally:
            for process in processes:
                with suppress(Exception):  # it may have ended
                    process.resume()
        self._await_ready()

    # -- with servers of its own --

    @property
    def _own(self) -> Databases:
        assert self._databases is not None
        return self._databases

    def primary_restarted(self) -> None:
        """As for a new version of it."""
        self._own.primary.control("restart", "-m", "fast")
        self._await_ready()

    def primary_killed(self) -> None:
        """All at once, and for so long that it is noticed."""
        self._own.primary.kill()
        self._await_unready()
        self._own.primary.start()
        self._await_ready()

    def primary_full(self) -> None:
        """Its disk: it can write no more, and not recover."""
        self._own.fill_disk(self._await_unready)
        self._await_ready()

    def replica_hangs(self) -> None:
        """Then no commit is acknowledged, and nothing is answered that needs one."""
        found = self._own.replica.processes()
        for each in found:
            each.suspend()
        self._await_unready()
        for each in found:
            each.resume()
        self._await_ready()

    def primary_lost(self) -> None:
        """For good: the replica is promoted, and gets a replica of its own."""
        self._own.fail_over(self.fleet.redirect)
        self._await_ready()

    def _await_unready(self) -> None:
        eventually(lambda: not any(ready(front) for front in self.fleet.fronts), 30)


def ready(front: Machine) -> bool:
    with (
        suppress(ConnectionError, OSError, ApiError),
        ts.Client(front.url, front.key, retries=0, timeout=5) as client,
    ):
        return bool(client.call("ready").status == "ready")
    return False


def prove(fleet: Fleet, visitors: Visitors, folder: Path, models: dict[int, set[int]]) -> None:
    """Acknowledged = journalled = learned, each once; all make the same state to the bit."""
    verify(fleet.url)
    with closing(journal_of(fleet.url)) as journal:
        entries = [entry for entry, _ in journal.read()]
    decided = {entry.number: entry.record for entry in entries if isinstance(entry.record, Decided)}
    paid = [entry.record for entry in entries if isinstance(entry.record, Paid)]
    origins = {record.origin: number for number, record in decided.items()}
    assert len(origins) == len(decided)
    assert {decision_number(each) for each in visitors.decided} <= set(origins)
    payoffs = {each.decision: each.payoff for each in paid}
    assert len(payoffs) == len(paid) == len(visitors.acknowledged)
    for token, payoff in visitors.acknowledged.items():
        assert payoffs[origins[decision_number(token)]] == payoff
    state = folded(fleet.url, folder, D)
    pool = state.pools["front"]
    assert sum(map(sum, pool.tally.shows)) == len(decided)
    assert sum(map(sum, pool.tally.payoff)) == sum(payoffs.values())
    assert any(isinstance(entry.record, Cut) for entry in entries)
    # Every machine that learned saved its state: the newest is of the last record.
    newest = 0
    for machine in fleet.learners:
        snapshots = Snapshots(machine.data / "snapshots")
        for number in snapshots.numbers()[:1]:
            saved = snapshots.read(number)
            newest = max(newest, number)
            if number == state.number:
                assert saved.fingerprint() == state.fingerprint()
                assert saved.cuts == state.cuts
    assert newest == state.number
    # What every front end scores from is what a fold in one process makes of the same records.
    (record,) = models
    found = folded_checksums(fleet.url, config(folder), folder, [record])
    assert models == {record: set(found)}
    assert is_linearizable(visitors.history["guest"])


def models_of(fleet: Fleet) -> dict[int, set[int]]:
    """By the record up to which it has learned: the checksums of the fronts' models."""
    found: dict[int, set[int]] = {}
    for front in fleet.fronts:
        with ts.Client(front.url, front.key, retries=2, timeout=10) as client:
            text = client.call("metrics")
        lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
        record = int(float(lines["topstory_front_model_record"]))
        found.setdefault(record, set()).add(int(float(lines["topstory_front_model_checksum"])))
    return found


def agreed(fleet: Fleet) -> dict[int, set[int]]:
    """What all front ends score from, once it is up to the same record."""
    looks: list[dict[int, set[int]]] = []

    def agree() -> bool:
        looks.append(models_of(fleet))
        return len(looks[-1]) == 1

    eventually(agree, 60)
    return looks[-1]


def run_faults(
    fleet: Fleet, clients: int, names: list[str], each: int, databases: Databases | None = None
) -> Faults:
    """Let visitors come, and faults happen one after the other; then prove that all is well."""
    visitors, faults = Visitors(fleet, clients), Faults(fleet, databases)
    with fleet:
        visitors.place_articles()

        async def chaos() -> None:
            for name in names:
                enough = len(visitors.acknowledged) + each
                async with asyncio.timeout(120):
                    while len(visitors.acknowledged) < enough:
                        await asyncio.sleep(0.01)
                await asyncio.to_thread(getattr(faults, name))

        asyncio.run(visitors.run(chaos()))
        eventually(lambda: all(ready(front) for front in fleet.fronts), 60)
        asyncio.run(visitors.again())
        eventually(lambda: count_paid(fleet.url) >= len(visitors.acknowledged), 60)
        models = agreed(fleet)
        data = fleet.owner().data
    assert "Traceback" not in fleet.errors()
    prove(fleet, visitors, data, models)
    print(
        f"{len(visitors.decided)} decisions, {len(visitors.acknowledged)} payoffs, "
        f"{visitors.repeats} repeats, {len(visitors.history['guest'])} operations of editors; "
        f"takeovers after {', '.join(f'{each:.1f}' for each in sorted(faults.takeovers))} s"
    )
    return faults


def test_what_a_fleet_acknowledges_counts_once_whatever_happens(tmp_path: Path) -> None:
    with Databases() as databases:
        machines = [
            Machine(tmp_path / "one", databases.url, "all"),
            Machine(tmp_path / "two", databases.url, "learner", minutes=-7),
            Machine(tmp_path / "three", databases.url, "front", minutes=5),
        ]
        names = ["learner_killed", "front_cut_off", "learner_paused", "primary_lost"]
        fleet = Fleet(databases.url, machines)
        faults = run_faults(fleet, 4, names, each=10, databases=databases)
    assert len(faults.takeovers) >= 2


@pytest.mark.long
def test_faults_at_random(tmp_path: Path) -> None:
    """Three front ends, two that can learn, a primary with a replica, clocks that are wrong."""
    every = sorted(name for name in vars(Faults) if not name.startswith("_"))
    random, happened = np.random.default_rng(SEED), Counter[str]()
    with Databases() as databases:
        machines = [
            Machine(tmp_path / "one", databases.url, "all"),
            Machine(tmp_path / "two", databases.url, "learner", minutes=-7),
            Machine(tmp_path / "three", databases.url, "front", minutes=5),
            Machine(tmp_path / "four", databases.url, "front"),
        ]
        rounds = max(1, round(SECONDS / (FAULT_SECONDS * len(every))))
        names = [name for _ in range(rounds) for name in random.permutation(every).tolist()]
        happened.update(names)
        faults = run_faults(Fleet(databases.url, machines), 8, names, each=20, databases=databases)
    print(dict(happened))
    assert len(faults.takeovers) >= 3 * rounds
