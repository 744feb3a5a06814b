"""All faults at random under load; at the end: acknowledged = journalled = learned, once each.

For one process and for workers; `test_chaos` has an owner and a standby. `make chaos` goes on for
ten minutes and has every fault, CI goes on for seconds.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from tests.serving.journal.test_unwritable import no_room, ready
from tests.serving.making import visitor
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest, Stats
from topstory.serving.journal.connect import journal_of
from topstory.serving.journal.records import Decided, Paid

SECONDS = float(os.environ.get("CHAOS_SECONDS", "3"))
SEED = int(os.environ.get("CHAOS_SEED", "0"))
CLIENTS = 6
ALL_SECONDS = 60.0  # a run that is longer has every fault
EMBARGO = timedelta(hours=12)
KEYED = (
    b"POST /v1/decide HTTP/1.1\r\nhost: a\r\nauthorization: Bearer KEY\r\n"
    b"content-length: %d\r\n\r\n%b"
)
HOSTILE = (
    b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"POST /v1/decide HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"
    + b"a: b\r\n" * 20_000,
    b"GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n" * 5_000,
    b"POST /v1/feedback HTTP/1.1\r\nhost: a\r\ncontent-length: 900\r\n\r\n",
    *(KEYED % (len(body), body) for body in (b'{"user": [1e3, 1e3, 1e3, 1]}', b"[" * 20_000)),
)
# Python imports this first, in every process: all have the same clock, as on a real machine.
CLOCK = """
import os, time
true = time.time_ns
def time_ns():
    return true() + {day} * (os.path.exists({ahead!r}) - os.path.exists({back!r}))
time.time_ns = time_ns
"""


def settable_clock(folder: Path, patch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Files that set the clock of the services, while they exist, a day ahead or back."""
    ahead, back, first = folder / "clock-ahead", folder / "clock-back", folder / "first"
    first.mkdir(parents=True)
    module = CLOCK.format(day=86_400 * 10**9, ahead=str(ahead), back=str(back))
    (first / "sitecustomize.py").write_text(module)
    path = os.environ.get("PYTHONPATH", "")
    patch.setenv("PYTHONPATH", f"{first}{os.pathsep}{path}".rstrip(os.pathsep))
    return ahead, back


def refused_start(served: Served) -> str:
    """What a start says that fails, as it should."""
    command = [*served.command, "--config", str(served.config), *served.options]
    started = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert started.returncode == 1, started.stdout
    return started.stderr


class Site:
    """A deployment under attack: the service that answers, and the faults that can befall it."""

    def __init__(self, folder: Path, workers: int, clocks: tuple[Path, Path]) -> None:
        self.random = random.Random(SEED)
        self.done: Counter[str] = Counter()
        self.folder, self._clocks = folder, clocks
        self._deck: list[Callable[[], None]] = []
        self.held: list[socket.socket] = []
        settings: dict[str, Any] = {
            **{"limits": {"worker_seconds": 2.0, "connections": 60}, "workers": workers},
            "journal": {"snapshot_seconds": 0.5},
        }
        self.served = Served(folder, **settings).start()

    # -- faults --

    def kill(self) -> None:
        """The process dies, and so may its workers; it is restarted."""
        for each in self.served.workers() if self.random.random() < 0.5 else []:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self._die()

    def _die(self) -> None:
        self._end()
        self.served.start()

    def _end(self) -> None:
        for each in self.served.workers():  # one that is paused would not see its learner go
            with suppress(psutil.NoSuchProcess):
                each.resume()
        self.served.end(signal.SIGKILL)

    def pause(self) -> None:
        """The service stands still for a moment."""
        assert self.served.process is not None
        self.served.process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0.1, 1.0))
        self.served.process.send_signal(signal.SIGCONT)

    def pause_worker(self) -> None:
        """A worker hangs, for long enough to be replaced, or not."""
        workers = self.served.workers()
        if workers:
            os.kill(self.random.choice(workers).pid, signal.SIGSTOP)
            time.sleep(self.random.uniform(0.0, 3.0))

    def kill_worker(self) -> None:
        """A worker dies."""
        for each in self.served.workers()[:1]:
            each.kill()

    def hang_journal(self) -> None:
        """Nothing can be written: another program locks the file."""
        other = sqlite3.connect(self.served.data / "journal.sqlite", isolation_level=None)
        with suppress(sqlite3.OperationalError):
            other.execute("BEGIN IMMEDIATE")
            time.sleep(self.random.uniform(0.1, 2.0))
            other.execute("ROLLBACK")
        other.close()

    def fill_disk(self) -> None:
        """No file can grow beyond somewhere in the last commits; it may die in that moment."""
        log = self.served.data / "journal.sqlite-wal"
        room = log.stat().st_size if log.exists() else 0
        with no_room(self.served, self.random.choice((0, room - 5_000, room + 20_000))):
            time.sleep(self.random.uniform(0.1, 1.0))
            if self.random.random() < 0.3:
                self._die()

    def take_journal(self) -> None:
        """Somebody moves the journal's files away: it is noticed, and no start begins anew."""
        files, away = list(self.served.data.glob("journal.sqlite*")), self.folder / "away"
        away.mkdir(exist_ok=True)
        for each in files:
            each.rename(away / each.name)
        eventually(lambda: not ready(self.served))
        self._end()
        assert "the journal is missing" in refused_start(self.served)
        for each in files:
            (away / each.name).rename(each)
        self.served.start()

    def lose_tail(self) -> None:
        """The journal comes back as it was some moments ago: no start goes on from there."""
        path, older, away = (
            self.served.data / "journal.sqlite",
            *(self.folder / name for name in ("older", "away")),
        )
        older.unlink(missing_ok=True)
        away.mkdir(exist_ok=True)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("VACUUM INTO ?", (str(older),))
            before = _last(connection)
            eventually(lambda: _last(connection) > before, 60)
        self._end()
        files = list(self.served.data.glob("journal.sqlite*"))
        for each in files:
            each.rename(away / each.name)
        older.rename(path)
        assert "the journal has lost records" in refused_start(self.served)
        for each in self.served.data.glob("journal.sqlite*"):
            each.unlink()
        for each in files:
            (away / each.name).rename(each)
        self.served.start()

    def second_service(self) -> None:
        """Somebody removes the lock, and starts another service on the same folder."""
        (self.served.data / "lock").unlink()
        assert "another process serves" in refused_start(self.served)

    def jump_clock(self) -> None:
        """The clock jumps by a day and comes back, perhaps after a restart."""
        sign = self.random.choice(self._clocks)
        sign.touch()
        time.sleep(self.random.uniform(0.1, 1.0))
        if self.random.random() < 0.5:
            self._die()
        sign.unlink()

    def strangers(self) -> None:
        """Hostile requests, with a key and without, and connections that are never used."""
        for data in HOSTILE:
            with suppress(OSError):
                each = socket.create_connection(self.served.address, timeout=5)
                self.held.append(each)
                each.setblocking(False)
                each.send(data.replace(b"KEY", self.served.key.encode()))
        for each in self.held[:-40]:
            each.close()
        del self.held[:-40]

    def kinds(self) -> list[Callable[[], None]]:
        """All faults."""
        found = [
            *(self.kill, self.pause, self.hang_journal, self.fill_disk, self.take_journal),
            *(self.lose_tail, self.second_service, self.jump_clock, self.strangers),
        ]
        return found + ([self.pause_worker, self.kill_worker] if self.served.workers() else [])

    def fault(self) -> None:
        """The next one: all of them in random order, and then again."""
        if not self._deck:
            self._deck = self.kinds()
            self.random.shuffle(self._deck)
        chosen = self._deck.pop()
        chosen()
        self.done[chosen.__name__] += 1


def _last(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT max(number) FROM journal").fetchone()[0])


class Visitors:
    """Clients that decide and pay whatever happens, and note what was acknowledged."""

    def __init__(self, site: Site) -> None:
        self.site, self.random = site, np.random.default_rng(SEED)
        self.decided: dict[str, str] = {}  # by request: the decision, as acknowledged
        self.paid: dict[str, float] = {}  # by request, as acknowledged
        self.open: dict[str, tuple[float, ...]] = {}  # requests without an answer to their payoff
        self.over = False
        self._number = 0

    async def visit(self) -> None:
        while not self.over:
            self._number += 1
            request, user = f"request-{self._number}", visitor(self.random)
            self.open[request] = user
            await self.ask(request, user)

    async def ask(self, request: str, user: tuple[float, ...]) -> None:
        """Decide and pay; whatever fails is asked again later."""
        served = self.site.served
        try:
            async with ts.AsyncClient(served.url, served.key, retries=0, timeout=5) as client:
                made = await client.decide(user, request=request)
                before = self.decided.setdefault(request, made.decision)
                assert made.decision == before, "a request was decided twice"
                payoff = float(int(request.split("-")[1]) % 2)
                await client.feedback(made.decision, payoff)
                self.paid[request] = payoff
                del self.open[request]
        except ConnectionError:
            await asyncio.sleep(0.02)
        except ApiError as error:
            if error.status != 503:
                raise
            await asyncio.sleep(0.02)

    async def settle(self) -> None:
        """Ask again what had no answer, until all have one."""

        async def some(requests: list[tuple[str, tuple[float, ...]]]) -> None:
            for request, user in requests:
                await self.ask(request, user)

        async with asyncio.timeout(120 + len(self.open)):
            while left := list(self.open.items()):
                await asyncio.gather(*(some(left[each::CLIENTS]) for each in range(CLIENTS)))


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_acknowledged_is_journalled_and_learned_once(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, workers, settable_clock(tmp_path, monkeypatch))
    visitors = Visitors(site)
    try:
        with ts.Client(site.served.url, site.served.key, timeout=60) as client:
            for number in range(4):
                known = ArticleRequest(features=(number / 4, 1 - number / 4, 1.0))
                client.put_article("front", f"article-{number}", known)
            later = ArticleRequest(features=(0.5, 0.5, 1.0), begins=datetime.now(UTC) + EMBARGO)
            client.put_article("front", "embargoed", later)
        kinds = len(site.kinds())
        stats = asyncio.run(under_faults(site, visitors))
    finally:
        for each in site.held:
            each.close()
        if site.served.process is not None:
            site.served.end()
    prove(visitors, stats, str(site.served.data))
    assert "Traceback" not in site.served.errors()
    assert len(site.done) == kinds or SECONDS < ALL_SECONDS
    print(f"{workers} that answer: {len(visitors.paid):,} visits, faults {dict(site.done)}")


async def under_faults(site: Site, visitors: Visitors) -> Stats:
    """The state at the end."""
    clients = [asyncio.create_task(visitors.visit()) for _ in range(CLIENTS)]
    end, least = time.monotonic() + SECONDS / 2, 5 if SECONDS < ALL_SECONDS else len(site.kinds())
    while time.monotonic() < end or site.done.total() < least:  # a deck has each fault once
        await asyncio.sleep(site.random.uniform(0.05, 0.5))
        await asyncio.to_thread(site.fault)
    visitors.over = True
    await asyncio.gather(*clients)
    await visitors.settle()
    async with ts.AsyncClient(site.served.url, site.served.key, timeout=60) as client:
        return await client.stats()


def prove(visitors: Visitors, stats: Stats, where: str) -> None:
    """Acknowledged = journalled = learned, once each."""
    journal = journal_of(where)
    try:
        entries = list(journal.read())
    finally:
        journal.close()
    requests = {e.number: e.record.request for e, _ in entries if isinstance(e.record, Decided)}
    paid = [
        (requests[e.record.decision], e.record.payoff)
        for e, _ in entries
        if isinstance(e.record, Paid)
    ]
    shown = {each.record.article for each, _ in entries if isinstance(each.record, Decided)}
    assert "embargoed" not in shown
    assert len(visitors.paid) > 3
    assert Counter(requests.values()) == Counter(list(visitors.decided))
    assert len(paid) == len(dict(paid))
    assert dict(paid) == visitors.paid
    pool = stats.pools["front"]
    assert pool.shows == len(visitors.decided)
    assert pool.payoff == sum(visitors.paid.values())
