"""Faults at random, for an owner and a standby on PostgreSQL: what was acknowledged counts once.

`make chaos` runs this for ten minutes, after fifty kills and all faults of one process and of
workers.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from tests.serving.fleet.proxy import Proxy
from tests.serving.journal.postgres.test_journal import folded
from tests.serving.journal.postgres.test_takeover import hung
from tests.serving.journal.test_unwritable import no_room, ready
from tests.serving.making import config, visitor
from tests.serving.processes import Served, eventually
from tests.serving.test_random_faults import EMBARGO, refused_start, settable_clock

import topstory as ts
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest
from topstory.serving.journal.connect import journal_of
from topstory.serving.journal.records import Decided, Paid
from topstory.serving.upkeep.verification import verify

SECONDS = float(os.environ.get("CHAOS_SECONDS", "20"))  # `make chaos` sets 600
SEED = int(os.environ.get("CHAOS_SEED", "4"))
CLIENTS = 8
HASTY = "from topstory.serving.journal.postgres import lock\nlock.LEASE_SECONDS = 2.0"


class Pair:
    """Two machines that serve one journal: one owns it, the other waits; each has a network."""

    def __init__(self, folder: Path, url: str, clocks: tuple[Path, Path]) -> None:
        self.url, self.clocks, self.acknowledged = url, clocks, 0
        self.networks = [Proxy(url), Proxy(url)]
        self.machines = [
            Served(
                folder / name,
                HASTY,
                journal={"url": network.url, "lock_seconds": 0.5, "snapshot_seconds": 1.0},
                role="alone",
                signing={"a": "ab" * 32},
            )
            for name, network in zip(("one", "two"), self.networks, strict=True)
        ]
        self.owner = self.machines[0].start()
        shutil.copytree(self.owner.data / "start", self.machines[1].data / "start")

    def take_over(self) -> None:
        """The other machine becomes the owner; this one is ended, paused or not."""
        before, after = self.owner, next(each for each in self.machines if each is not self.owner)
        after.options = ("--standby",)
        self.owner = after.start()
        assert before.process is not None
        before.process.send_signal(signal.SIGCONT)
        time.sleep(0.5)  # it goes on, and must not be able to write
        before.end(signal.SIGKILL)

    @property
    def network(self) -> Proxy:
        """The owner's."""
        return self.networks[self.machines.index(self.owner)]

    def end(self) -> None:
        for each, network in zip(self.machines, self.networks, strict=True):
            network.mend()
            if each.process is not None:
                each.process.send_signal(signal.SIGCONT)
                each.end()
            network.__exit__()


class Visitors:
    """Clients that decide and pay, at whichever machine is the owner."""

    def __init__(self, pair: Pair) -> None:
        self.pair, self.random = pair, np.random.default_rng(3)
        self.acknowledged: dict[str, float] = {}
        self.uncertain: dict[str, float] = {}
        self.over = False

    async def run(self, chaos: Any) -> None:
        clients = [asyncio.create_task(self._visit()) for _ in range(CLIENTS)]
        try:
            await chaos
        finally:
            self.over = True
            await asyncio.gather(*clients)

    async def _visit(self) -> None:
        while not self.over:
            served = self.pair.owner
            with suppress(ConnectionError, ApiError):  # the next attempt may be to the next owner
                async with ts.AsyncClient(served.url, served.key, retries=0, timeout=2) as client:
                    while served is self.pair.owner and not self.over:
                        made = await client.decide(visitor(self.random))
                        self.uncertain[made.decision] = float(self.random.random() < 0.5)
                        await self.pay(client, made.decision)
            await asyncio.sleep(0.05)

    async def pay(self, client: ts.AsyncClient, decision: str) -> None:
        await client.feedback(decision, self.uncertain[decision])
        self.acknowledged[decision] = self.uncertain.pop(decision)
        self.pair.acknowledged += 1


def disconnected(pair: Pair) -> None:
    with psycopg.connect(pair.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def database_hangs(pair: Pair) -> None:
    processes = hung(pair.url)
    for process in processes:
        process.suspend()
    time.sleep(1.5)
    for process in processes:
        with suppress(Exception):  # it may have ended
            process.resume()


def owner_paused(pair: Pair) -> None:
    assert pair.owner.process is not None
    pair.owner.process.send_signal(signal.SIGSTOP)
    pair.take_over()


def network_swallows(pair: Pair) -> None:
    """The owner's network drops every packet: the other machine takes over."""
    network = pair.network
    network.stall()
    try:
        pair.take_over()
    finally:
        network.mend()


def clock_jumps(pair: Pair) -> None:
    """By a day, ahead or back, on both machines; the owner may be started meanwhile."""
    sign = pair.clocks[pair.acknowledged % 2]
    sign.touch()
    time.sleep(0.5)
    if pair.acknowledged % 4 < 2:
        owner_killed(pair)
    sign.unlink()


def tail_lost(pair: Pair) -> None:
    """A replica without the last records takes the database's place: nobody goes on from there."""
    with psycopg.connect(pair.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE older AS SELECT * FROM topstory.meta")
        before = pair.acknowledged
        eventually(lambda: pair.acknowledged > before + 5, 60)
        beyond = "number > (SELECT head FROM older)"
        with connection.transaction():
            connection.execute("LOCK topstory.journal, topstory.meta IN EXCLUSIVE MODE")
            connection.execute(
                f"CREATE TABLE tail AS SELECT * FROM topstory.journal WHERE {beyond}"
            )
            connection.execute("CREATE TABLE whole AS SELECT * FROM topstory.meta")
            connection.execute(f"DELETE FROM topstory.journal WHERE {beyond}")
            connection.execute("DELETE FROM topstory.meta")
            connection.execute("INSERT INTO topstory.meta SELECT * FROM older")
        eventually(lambda: not ready(pair.owner), 30)
        pair.owner.end(signal.SIGKILL)
        assert "the journal has lost records" in refused_start(pair.owner)
        with connection.transaction():
            connection.execute("INSERT INTO topstory.journal SELECT * FROM tail")
            connection.execute("DELETE FROM topstory.meta")
            connection.execute("INSERT INTO topstory.meta SELECT * FROM whole")
            connection.execute("DROP TABLE older, tail, whole")
    pair.owner.start()


def owner_killed(pair: Pair) -> None:
    pair.owner.end(signal.SIGKILL)
    pair.owner.start()


def database_full(pair: Pair) -> None:
    """The disk of its tables is full: it refuses every commit, and says so."""
    with psycopg.connect(pair.url, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'could not extend file: No space left on device' "
            "USING ERRCODE = 'disk_full'; END $$"
        )
        connection.execute(
            "CREATE TRIGGER full_disk AFTER INSERT ON topstory.journal EXECUTE FUNCTION full_disk()"
        )
        time.sleep(1.5)
        connection.execute("DROP TRIGGER full_disk ON topstory.journal")


def database_crashes(pair: Pair) -> None:
    """As when it can write its log no further: it ends all sessions, and recovers."""
    hung(pair.url)[-1].kill()
    eventually(lambda: answers(pair.url), 60)


def answers(url: str) -> bool:
    with suppress(psycopg.OperationalError), psycopg.connect(url):
        return True
    return False


def owner_disk_full(pair: Pair) -> None:
    """The owner's own disk: snapshots fail, but the journal is elsewhere."""
    with no_room(pair.owner):
        time.sleep(1.5)


FAULTS = (
    *(disconnected, database_hangs, database_full, database_crashes),
    *(owner_paused, owner_killed, owner_disk_full),
    *(network_swallows, clock_jumps, tail_lost),
)


@pytest.mark.long
def test_what_an_owner_and_a_standby_acknowledge_counts_once(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(tmp_path, url, settable_clock(tmp_path, monkeypatch))
    visitors, happened = Visitors(pair), Counter[str]()

    async def chaos() -> None:
        random, end = np.random.default_rng(SEED), time.monotonic() + SECONDS
        deck: list[int] = []  # all of them in random order, and then again
        while time.monotonic() < end or len(happened) < len(FAULTS):
            enough = len(visitors.acknowledged) + 20
            async with asyncio.timeout(60):
                while len(visitors.acknowledged) < enough:
                    await asyncio.sleep(0.01)
            deck = deck or random.permutation(len(FAULTS)).tolist()
            fault = FAULTS[deck.pop()]
            happened[fault.__name__] += 1
            await asyncio.to_thread(fault, pair)

    async def again() -> None:
        """What had no answer is sent once more."""
        served = pair.owner
        async with ts.AsyncClient(served.url, served.key, timeout=20) as client:
            for decision in list(visitors.uncertain):
                await visitors.pay(client, decision)

    try:
        with ts.Client(pair.owner.url, pair.owner.key) as client:
            for number in range(4):
                said = ArticleRequest(features=(number / 4, 1 - number / 4, 1.0))
                client.put_article("front", f"article-{number}", said)
            later = ArticleRequest(features=(0.5, 0.5, 1.0), begins=datetime.now(UTC) + EMBARGO)
            client.put_article("front", "embargoed", later)
        asyncio.run(visitors.run(chaos()))
        asyncio.run(again())
        with ts.Client(pair.owner.url, pair.owner.key) as client:
            eventually(lambda: client.stats().waiting == 0)
            stats = client.stats()
    finally:
        pair.end()
    journal = journal_of(url)
    records = [entry.record for entry, _ in journal.read()]
    journal.close()
    paid = Counter(each.decision for each in records if isinstance(each, Paid))
    assert not any(isinstance(each, Decided) and each.article == "embargoed" for each in records)
    assert set(paid.values()) == {1}
    assert len(paid) == len(visitors.acknowledged)
    assert stats.pools["front"].payoff == sum(visitors.acknowledged.values())
    assert verify(url).last >= stats.records
    settings = config(pair.owner.data, journal={"url": url})
    assert folded(settings) == stats.fingerprint
    assert not any("Traceback" in each.errors() for each in pair.machines)
    print(f"{len(paid)} payoffs, each once; {dict(happened)}")
