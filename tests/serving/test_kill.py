"""kill -9 at random moments under load: nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.serving.making import config, folded, visitor
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.config import Config
from topstory.serving.messages import ArticleRequest
from topstory.serving.opening import Starts, recover
from topstory.serving.records import Paid
from topstory.serving.refusals import Refused
from topstory.serving.snapshots import Snapshots
from topstory.serving.sqlite_journal import SqliteJournal

KILLS = int(os.environ.get("SOAK_KILLS", "5"))  # `make soak` sets 50
CLIENTS = 12


class Load:
    """Clients that decide and pay as fast as they can, and note what was acknowledged."""

    def __init__(self, served: Served, seed: int) -> None:
        self.served, self.random = served, np.random.default_rng(seed)
        self.acknowledged: dict[str, float] = {}
        self.uncertain: dict[str, float] = {}  # sent, but no answer came

    async def until_killed(self, moment: float) -> None:
        clients = [asyncio.create_task(self._visit()) for _ in range(CLIENTS)]
        await asyncio.sleep(moment)
        if self.random.random() < 0.5:  # else workers end when they see that their learner did
            for each in self.served.workers():
                each.kill()
        await asyncio.to_thread(self.served.end, signal.SIGKILL)
        await asyncio.gather(*clients)

    async def _visit(self) -> None:
        async with ts.AsyncClient(self.served.url, self.served.key, retries=0) as client:
            try:
                while True:
                    made = await client.decide(visitor(self.random), slots=2)
                    payoff = float(self.random.random() < 0.5)
                    self.uncertain[made.decision] = payoff
                    await client.feedback(made.decision, payoff)
                    self.acknowledged[made.decision] = self.uncertain.pop(made.decision)
            except ConnectionError:
                return

    async def again(self) -> None:
        """Whatever had no answer is sent once more, and so is much that had."""
        async with ts.AsyncClient(self.served.url, self.served.key, timeout=60) as client:
            for decision, payoff in self.uncertain.items():
                await client.feedback(decision, payoff)
            self.acknowledged |= self.uncertain
            self.uncertain.clear()
            for decision, payoff in list(self.acknowledged.items())[-20:]:
                assert (await client.feedback(decision, payoff)).repeated
                with pytest.raises(Refused, match="payoff is"):
                    await client.feedback(decision, payoff + 1)


def payoffs(told: Config) -> Counter[int]:
    """How often each decision's payoff is in the journal."""
    journal = SqliteJournal(Path(told.data) / "journal.sqlite")
    found = Counter(
        entry.record.decision for entry, _ in journal.read() if isinstance(entry.record, Paid)
    )
    journal.close()
    return found


@pytest.mark.parametrize("workers", [1, 2])
def test_no_acknowledged_payoff_is_lost_by_kill_9(tmp_path: Path, workers: int) -> None:
    served = Served(tmp_path, journal={"snapshot_seconds": 0.2}, workers=workers)
    kills = -(-KILLS // workers)
    told = config(served.data)
    random = np.random.default_rng(kills)
    load = Load(served, seed=1)
    served.start()
    with ts.Client(served.url, served.key, timeout=60) as client:
        for number in range(4):
            said = ArticleRequest(features=(number / 4, 1 - number / 4, 1.0))
            client.put_article("front", f"article-{number}", said)
    for _ in range(kills):
        asyncio.run(load.until_killed(float(random.uniform(0.1, 0.9))))
        served.start()
        asyncio.run(load.again())
    with ts.Client(served.url, served.key, timeout=60) as client:
        told_by_service = client.stats()
    assert served.end() == 0
    assert len(load.acknowledged) > kills * 10
    # Every payoff is there, once.
    counted = payoffs(told)
    assert set(counted.values()) == {1}
    assert len(counted) == len(load.acknowledged)
    # What the service held is what a fresh fold of the whole journal gives, to the bit,
    state = folded(told)
    assert state.fingerprint() == told_by_service.fingerprint
    total = sum(map(sum, state.pools["front"].tally.payoff))
    assert total == sum(load.acknowledged.values())
    # and what the next start gets from the snapshot that the end has left.
    snapshots = Snapshots(served.data / "snapshots")
    assert snapshots.numbers()[0] == state.number, served.errors()
    journal = SqliteJournal(served.data / "journal.sqlite")
    again = recover(journal, snapshots, Starts(served.data / "start"), 4)
    journal.close()
    assert again.fingerprint() == state.fingerprint()
    assert "Traceback" not in served.errors()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_graceful_end_loses_nothing_in_flight(tmp_path: Path, workers: int) -> None:
    served = Served(tmp_path, workers=workers)
    served.start()
    with ts.Client(served.url, served.key, timeout=60) as client:
        for number in range(3):
            client.put_article("front", f"article-{number}", ArticleRequest())

    async def work() -> tuple[int, int]:
        load = Load(served, seed=2)
        clients = [asyncio.create_task(load._visit()) for _ in range(CLIENTS)]
        await asyncio.sleep(0.5)
        status = await asyncio.to_thread(served.end)
        await asyncio.gather(*clients)
        assert status == 0
        # A request whose answer never came was never taken: the journal has no more payoffs.
        return len(load.acknowledged), len(load.uncertain)

    acknowledged, uncertain = asyncio.run(work())
    found = payoffs(config(served.data))
    assert acknowledged <= len(found) <= acknowledged + uncertain
    assert acknowledged > 10
    state = folded(config(served.data))
    assert Snapshots(served.data / "snapshots").numbers()[0] == state.number
