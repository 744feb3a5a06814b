"""kill -9 at random moments under load: nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.making import config, folded, visitor
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest, Stats
from topstory.serving.config.schema import Config
from topstory.serving.journal.records import Decided, Paid
from topstory.serving.journal.sqlite import SqliteJournal
from topstory.serving.state.pool import FOREVER
from topstory.serving.state.recovery.recovery import Starts, recover
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.state.state import State
from topstory.serving.upkeep.journal_export import export

KILLS = int(os.environ.get("SOAK_KILLS", "3"))  # `make soak` sets 50
CLIENTS = 12
# So that the archive is written over and over: as it is after days, every fifth of a second.
ARCHIVING = (
    "from topstory.serving.upkeep import keeper\n"
    "keeper.PAYOFF_GRACE, keeper.MAX_ARCHIVED_AT_ONCE = 0, 40"
)
WINDOW = 2.0  # seconds, then
PATIENT = {"queue_seconds": 60.0}  # a busy machine refuses nobody


class Load:
    """Clients that decide and pay as fast as they can, and note what was acknowledged."""

    def __init__(self, served: Served, seed: int) -> None:
        self.served, self.random = served, np.random.default_rng(seed)
        self.acknowledged: dict[str, float] = {}
        self.uncertain: dict[str, float] = {}  # sent, but no answer came
        self.unknown: dict[str, float] = {}  # nor will one, for its window is over
        self.repeated = 0  # acknowledged, but an earlier answer had been lost
        self.titles: dict[str, str | None] = {}  # of articles, as acknowledged
        self.changing: dict[str, str | None] = {}
        self._edits = 0
        # What was answered by then is known for good, if decisions are durable.
        relaxed = served.settings.get("journal", {}).get("decisions") == "relaxed"
        expiring = served.settings.get("window_seconds") == WINDOW
        self._may_be = {"unknown_decision"} if relaxed else set()
        self._may_be |= {"expired_decision"} if expiring else set()

    async def until_killed(self, moment: float) -> None:
        clients = [asyncio.create_task(self._visit()) for _ in range(CLIENTS)]
        clients.append(asyncio.create_task(self._edit()))
        await self.until_acknowledged(10)  # however slow the machine is
        await asyncio.sleep(moment)
        if self.random.random() < 0.5:  # else workers end when they see that their learner did
            for each in self.served.workers():
                each.kill()
        await asyncio.to_thread(self.served.end, signal.SIGKILL)
        await asyncio.gather(*clients)

    async def until_acknowledged(self, more: int) -> None:
        """Wait until so many payoffs more are."""
        enough = len(self.acknowledged) + more
        async with asyncio.timeout(60):
            while len(self.acknowledged) < enough:
                await asyncio.sleep(0.005)

    async def _visit(self) -> None:
        async with ts.AsyncClient(self.served.url, self.served.key, retries=0) as client:
            with suppress(ConnectionError):
                while True:
                    made = await client.decide(visitor(self.random), slots=2)
                    self.uncertain[made.decision] = float(self.random.random() < 0.5)
                    await self._pay(client, made.decision)

    async def _pay(self, client: ts.AsyncClient, decision: str) -> str:
        """How it went, once there is an answer."""
        payoff = self.uncertain[decision]
        outcome = await outcome_of(client, decision, payoff)
        if outcome in ("new", "repeated"):
            self.acknowledged[decision] = payoff
            self.repeated += outcome == "repeated"
        else:
            assert outcome in self._may_be
        del self.uncertain[decision]
        return outcome

    async def _edit(self) -> None:
        async with ts.AsyncClient(self.served.url, self.served.key, retries=0) as client:
            with suppress(ConnectionError):
                while True:
                    self._edits += 1
                    name = f"edited-{self._edits % 3}"
                    removed = self._edits % 2 == 0 and self.titles.get(name) is not None
                    title = self.changing[name] = None if removed else f"{self._edits}"
                    if title is None:
                        await client.remove_article("front", name)
                    else:
                        said = ArticleRequest(features=(0.5, 0.5, 1.0), title=title)
                        await client.put_article("front", name, said)
                    self.titles[name] = title
                    await asyncio.sleep(0.02)

    async def again(self) -> None:
        """Whatever had no answer is sent once more, and so is much that had."""
        async with ts.AsyncClient(self.served.url, self.served.key, timeout=60) as client:
            for decision, payoff in list(self.uncertain.items()):
                if await self._pay(client, decision) == "expired_decision":
                    self.unknown[decision] = payoff
            for decision, payoff in list(self.acknowledged.items())[-20:]:
                late = self._may_be & {"expired_decision"}
                assert await outcome_of(client, decision, payoff) in {"repeated", *late}
                assert await outcome_of(client, decision, 1 - payoff) in {"payoff_conflict", *late}
            now = {view.id: view.title for view in await client.articles("front")}
            for name, title in self.changing.items():
                assert now.get(name) in (self.titles.get(name), title)
                self.titles[name] = now.get(name)


async def outcome_of(client: ts.AsyncClient, decision: str, payoff: float) -> str:
    """Whether it is new or repeated, or why it was refused."""
    try:
        return "repeated" if (await client.feedback(decision, payoff)).repeated else "new"
    except ApiError as refused:
        return refused.reason


def payoffs(settings: Config) -> Counter[int]:
    """How often each decision's payoff is in the journal."""
    journal = SqliteJournal(Path(settings.data) / "journal.sqlite")
    found = Counter(
        entry.record.decision for entry, _ in journal.read() if isinstance(entry.record, Paid)
    )
    journal.close()
    return found


def killed(served: Served, share: float) -> tuple[Load, Stats]:
    """Kill it under load and start it again, over and over; what it tells at last."""
    kills = math.ceil(KILLS * share)
    random = np.random.default_rng(kills)
    load = Load(served, seed=1)
    with ts.Client(served.url, served.key, timeout=60) as client:
        for number in range(4):
            said = ArticleRequest(features=(number / 4, 1 - number / 4, 1.0))
            client.put_article("front", f"article-{number}", said)
    for _ in range(kills):
        asyncio.run(load.until_killed(float(random.uniform(0.0, 0.8))))
        served.start()
        asyncio.run(load.again())
    with ts.Client(served.url, served.key, timeout=60) as client:
        return load, client.stats()


def recovered(served: Served) -> State:
    """What the next start gets from a snapshot and the journal after it."""
    journal = SqliteJournal(served.data / "journal.sqlite")
    try:
        snapshots = Snapshots(served.data / "snapshots")
        return recover(journal, snapshots, Starts(served.data / "start"), 4)
    finally:
        journal.close()


@pytest.mark.parametrize("decisions", ["durable", "relaxed"])
@pytest.mark.parametrize("workers", [1, 2])
def test_no_acknowledged_payoff_is_lost_by_kill_9(
    tmp_path: Path, workers: int, decisions: str
) -> None:
    """Nor is an edit; relaxed decisions may be, but none that was paid for."""
    journal = {"snapshot_seconds": 0.2, "decisions": decisions}
    with Served(tmp_path, journal=journal, workers=workers, limits=PATIENT) as served:
        load, stats = killed(served, 0.4 if decisions == "durable" else 0.2)
        assert served.end() == 0
    settings = config(served.data)
    # Every payoff is there, once.
    counted = payoffs(settings)
    assert set(counted.values()) == {1}
    assert len(counted) == len(load.acknowledged)
    # What the service held is what a fresh fold of the whole journal gives, to the bit,
    state = folded(settings)
    assert state.fingerprint() == stats.fingerprint
    total = sum(map(sum, state.pools["front"].tally.payoff))
    assert total == sum(load.acknowledged.values())
    # and what the next start gets from the snapshot that the end has left.
    assert Snapshots(served.data / "snapshots").numbers()[0] == state.number, served.errors()
    assert recovered(served).fingerprint() == state.fingerprint()
    # Nothing was shown that was not in the pool as the journal has it: else this is refused.
    kept = SqliteJournal(served.data / "journal.sqlite")
    exported = export(kept, tmp_path / "log", "front")
    kept.close()
    assert exported.events == stats.pools["front"].shows
    assert "Traceback" not in served.errors()


@pytest.mark.parametrize("workers", [1, 2])
def test_an_archive_that_kill_9_interrupts_loses_nothing_and_has_nothing_twice(
    tmp_path: Path, workers: int
) -> None:
    journal: dict[str, Any] = {"snapshot_seconds": 0.2, "archive_days": 1e-6}
    settings = {"journal": journal, "window_seconds": WINDOW, "workers": workers}
    with Served(tmp_path, ARCHIVING, **settings, limits=PATIENT) as served:
        load, _ = killed(served, 0.2)
        folder = served.data / "archive" / "front"
        with ts.Client(served.url, served.key, timeout=60) as client:

            def archived() -> bool:
                client.decide(visitor(load.random))  # so that there is something to save
                return len(list(folder.glob("*-all"))) >= 2

            eventually(archived, 60)
            with pytest.raises(ApiError, match="window") as refused:
                client.feedback(next(iter(load.acknowledged)), 1.0)
            assert (refused.value.status, refused.value.reason) == (410, "expired_decision")
        served.end(signal.SIGKILL)
        served.start()
        with ts.Client(served.url, served.key, timeout=60) as client:
            stats = client.stats()
        assert served.end() == 0
    # The journal has what the archive has not, and together they have what the state has counted.
    kept = SqliteJournal(served.data / "journal.sqlite")
    left = [each for each in kept.history(FOREVER) if isinstance(each[0].record, Decided)]
    begun = kept.pruned()
    kept.close()
    # A round that was not dropped from the journal is written again: it does not count yet.
    rounds = [each for each in folder.glob("*-all") if int(each.name.partition("-")[0]) <= begun]
    events = [event for each in rounds for event in ts.EventLog.read(each)]
    assert len({(event.timestamp, *event.user) for event in events}) == len(events) > 0
    counts = stats.pools["front"]
    assert len(events) + len(left) == counts.shows
    paid = [payoff.record.payoff for _, payoff in left if payoff is not None]
    total = sum(event.payoff for event in events) + sum(paid)
    assert total == counts.payoff
    assert 0 <= total - sum(load.acknowledged.values()) <= sum(load.unknown.values())
    # Either snapshot and the journal after it make the same state. There may be a third one: that
    # of the last moment before the end, which the end did not wait for.
    newest, *_ = Snapshots(served.data / "snapshots").numbers()
    assert recovered(served).fingerprint() == stats.fingerprint
    shutil.rmtree(served.data / "snapshots" / f"{newest:012d}")
    assert recovered(served).fingerprint() == stats.fingerprint
    assert "Traceback" not in served.errors()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_graceful_end_loses_nothing_in_flight(tmp_path: Path, workers: int) -> None:
    served = Served(tmp_path, workers=workers, limits=PATIENT)
    served.start()
    with ts.Client(served.url, served.key, timeout=60) as client:
        for number in range(3):
            client.put_article("front", f"article-{number}", ArticleRequest())

    load = Load(served, seed=2)

    async def work() -> None:
        clients = [asyncio.create_task(load._visit()) for _ in range(CLIENTS)]
        await load.until_acknowledged(100)
        status = await asyncio.to_thread(served.end)
        await asyncio.gather(*clients)
        assert status == 0

    asyncio.run(work())
    # What was committed was answered: the journal has nothing that clients do not know of.
    counted = payoffs(config(served.data))
    assert set(counted.values()) == {1}
    assert len(counted) == len(load.acknowledged)
    assert not load.repeated
    state = folded(config(served.data))
    shows = sum(map(sum, state.pools["front"].tally.shows))
    assert shows == len(load.acknowledged) + len(load.uncertain)
    assert Snapshots(served.data / "snapshots").numbers()[0] == state.number
