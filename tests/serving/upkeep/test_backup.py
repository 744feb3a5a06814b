"""A backup made under load is a data folder: the service that is started from it goes on."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.cli.running import answer, run, words
from tests.serving.making import add_articles, config, folded, visitor, visits
from tests.serving.making import run as run_service
from tests.serving.processes import MAIN, Served, as_toml
from tests.test_docs import fences

import topstory as ts
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest, Stats
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import Clock
from topstory.serving.journal.records import Decided
from topstory.serving.journal.sqlite import SqliteJournal
from topstory.serving.service.service import Service
from topstory.serving.state.pool import FOREVER
from topstory.serving.state.recovery.recovery import Starts, recover
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.state.state import State
from topstory.serving.upkeep import backup
from topstory.serving.upkeep.backup import BackedUp, back_up, copy_snapshots
from topstory.serving.upkeep.keeper import DAY, Keeper

PAGE = Path(__file__).parents[3] / "docs" / "operations" / "backup.md"
# So that the archive is written over and over: as it is after days, every fifth of a second.
ARCHIVING = (
    "from topstory.serving.upkeep import keeper\n"
    "keeper.PAYOFF_GRACE, keeper.MAX_ARCHIVED_AT_ONCE = 0, 40"
)
CLIENTS = 8


def copied(folder: Path) -> tuple[State, list[tuple[Decided, float | None]], int]:
    """Of a data folder: its state, its decisions with their payoffs, and what was archived."""
    journal = SqliteJournal(folder / "journal.sqlite")
    try:
        state = recover(journal, Snapshots(folder / "snapshots"), Starts(folder / "start"), 4)
        decided = [
            (entry.record, paid.record.payoff if paid else None)
            for entry, paid in journal.history(FOREVER)
            if isinstance(entry.record, Decided)
        ]
        return state, decided, journal.pruned()
    finally:
        journal.close()


class Visitors:
    """Clients that decide and pay as fast as they can, and count what was acknowledged."""

    def __init__(self, served: Served) -> None:
        self.served, self.random = served, np.random.default_rng(3)
        self.paid = self.total = 0
        self.over = False

    async def during(self, archived: bool, command: list[str]) -> tuple[str, int, float, int]:
        """What a command says; payoffs, and their sum, from before it began, and those since.

        It begins when there are payoffs, and if so asked, once something was archived.
        """
        tasks = [asyncio.create_task(self._visit()) for _ in range(CLIENTS)]
        async with asyncio.timeout(60):
            while self.paid <= 10 or (archived and not self._pruned()):
                await asyncio.sleep(0.1)
        paid, total = self.paid, self.total
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
        self.over = True
        await asyncio.gather(*tasks)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout, paid, total, self.paid - paid

    def _pruned(self) -> int:
        journal = SqliteJournal(self.served.data / "journal.sqlite")
        try:
            return journal.pruned()
        finally:
            journal.close()

    async def _visit(self) -> None:
        async with ts.AsyncClient(self.served.url, self.served.key, timeout=60) as client:
            while not self.over:
                made = await client.decide(visitor(self.random))
                payoff = int(self.random.integers(2))
                try:
                    await client.feedback(made.decision, payoff)
                except ApiError as refused:  # a window of seconds may end on a busy machine
                    if refused.reason != "expired_decision":
                        raise
                else:
                    self.paid, self.total = self.paid + 1, self.total + payoff


@pytest.mark.parametrize(("workers", "archiving"), [(1, False), (2, True)])
def test_a_service_goes_on_from_a_backup_that_was_made_under_load(
    tmp_path: Path, workers: int, archiving: bool
) -> None:
    journal: dict[str, Any] = {"snapshot_seconds": 0.2}
    settings: dict[str, Any] = {"workers": workers, "journal": journal}
    if archiving:
        settings |= {"window_seconds": 2.0, "journal": {**journal, "archive_days": 1e-6}}
    first = ARCHIVING if archiving else ""
    out = tmp_path / "backup"
    with Served(tmp_path / "first", first, **settings) as served:
        with ts.Client(served.url, served.key, timeout=60) as client:
            for number in range(4):
                article = ArticleRequest(features=(number / 4, 1 - number / 4, 1.0))
                client.put_article("front", f"article-{number}", article)
            early = client.decide((1.0, 0.0, 0.0, 1.0))
        load = Visitors(served)
        command = [sys.executable, "-c", MAIN, "backup-journal", str(out), "--json"]
        command += ["--config", str(served.config)]
        text, paid, total, since = asyncio.run(load.during(archiving, command))
        assert since > 0  # it did not wait for the backup
        assert served.end() == 0
        assert "Traceback" not in served.errors()
    report = msgspec.json.decode(text, type=BackedUp)
    assert mode(out) == 0o700
    assert mode(out / "signing.toml") == mode(out / "topstory.toml") == 0o600
    assert (out / "topstory.toml").read_bytes() == served.config.read_bytes()
    assert not list(tmp_path.glob(".*"))
    state, decided, pruned = copied(out)
    assert report.record == state.number
    # What was acknowledged before is there, and nothing is there twice or in neither place.
    tally = state.pools["front"].tally
    rounds = list((out / "archive" / "front").glob("*-all"))
    assert bool(rounds) == bool(pruned) == archiving
    events = [event for each in rounds for event in ts.EventLog.read(each)]
    assert len(events) + len(decided) == sum(map(sum, tally.shows)) > paid
    payoffs = sum(event.payoff for event in events) + sum(payoff or 0 for _, payoff in decided)
    assert payoffs == sum(map(sum, tally.payoff)) >= total
    if not archiving:
        assert sum(payoff is not None for _, payoff in decided) >= paid
        assert folded(config(out)).fingerprint() == state.fingerprint()
    # Another service goes on from there.
    again = Served(tmp_path / "second", **{**settings, "journal": journal})
    shutil.copytree(out, again.data)
    stats = go_on(again, early.decision, "410" if archiving else "new")
    assert stats.pools["front"].payoff == payoffs + (not archiving)
    assert copied(again.data)[0].fingerprint() == stats.fingerprint
    if not archiving:
        assert folded(config(again.data)).fingerprint() == stats.fingerprint


def go_on(served: Served, decision: str, outcome: str) -> Stats:
    """Pay for a decision that another service made; what it tells then."""
    with served, ts.Client(served.url, served.key, timeout=60) as client:
        if outcome == "new":
            assert not client.feedback(decision, 1.0).repeated
            assert client.feedback(decision, 1.0).repeated
        else:
            with pytest.raises(ApiError, match="window"):
                client.feedback(decision, 1.0)
        return client.stats()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


# -- without HTTP --


def archived(folder: Path) -> Config:
    """The configuration of a service whose first decisions are archived."""
    settings = config(folder, journal={"archive_days": 1}, window_seconds=60)

    async def work(service: Service) -> None:
        keeper = Keeper(service, Snapshots(folder / "snapshots"))
        await add_articles(service, 3)
        await visits(service, 60, seed=1)
        await keeper.snapshot()
        await visits(service, 5, seed=3)
        await keeper.snapshot()
        service.ledger.clock = Clock(service.clock.now() + 2 * DAY)
        assert await keeper.archive() > 60
        await visits(service, 5, seed=4)

    run_service(settings, work)
    return settings


def test_a_round_of_the_archive_that_the_journal_still_has_is_left_out(tmp_path: Path) -> None:
    settings = archived(tmp_path / "data")
    pools = tmp_path / "data" / "archive" / "front"
    done = len(list(pools.iterdir()))
    assert done == 2
    (later,) = pools.glob("*-all")
    shutil.copytree(later, pools / "000000009999-all")  # not dropped from the journal yet
    (pools / ".000000009999-uniform.writing-1").mkdir()
    assert back_up(settings, tmp_path / "out").archived == done
    kept = {each.name for each in (tmp_path / "out" / "archive" / "front").iterdir()}
    assert kept == {each.name for each in pools.iterdir() if "9999" not in each.name}


def test_snapshots_that_were_dropped_meanwhile_are_copied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = archived(tmp_path / "data")
    took: list[int] = []

    def vanishing(source: Snapshots, target: Path) -> list[int]:
        """The first time, older ones than the journal needs."""
        numbers = copy_snapshots(source, target)
        took.append(len(numbers))
        if len(took) == 1:
            for number in numbers:
                shutil.rmtree(target / f"{number:012d}")
            return [3]
        return numbers

    monkeypatch.setattr(backup, "copy_snapshots", vanishing)
    assert back_up(settings, tmp_path / "out").snapshots == 2
    assert took == [2, 2]


def test_only_whole_snapshots_are_copied(tmp_path: Path) -> None:
    settings = archived(tmp_path / "data")
    kept = tmp_path / "data" / "snapshots"
    newest, older = Snapshots(kept).numbers()
    (kept / f"{newest:012d}" / "front.safetensors").unlink()  # being dropped
    assert back_up(settings, tmp_path / "out").snapshots == 1
    assert Snapshots(tmp_path / "out" / "snapshots").numbers() == [older]
    (kept / f"{older:012d}" / "state.json").write_bytes(b"{}")
    with pytest.raises(ValueError, match="in 5 attempts no snapshot could be copied"):
        back_up(settings, tmp_path / "none")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "out"]


def test_a_snapshot_that_goes_while_it_is_copied_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = archived(tmp_path / "data")
    _, older = Snapshots(tmp_path / "data" / "snapshots").numbers()
    plain = shutil.copyfile

    def copy(source: Path, target: Path) -> None:
        if f"{older:012d}" in source.parts and source.parent.exists():
            shutil.rmtree(source.parent)
        plain(source, target)

    monkeypatch.setattr(shutil, "copyfile", copy)
    assert back_up(settings, tmp_path / "out").snapshots == 1


def test_what_cannot_be_backed_up_is_reported(tmp_path: Path) -> None:
    file, out = tmp_path / "topstory.toml", tmp_path / "out"
    asked = ("backup-journal", out, "--config", file)
    assert "No such file" in run(*asked, status=1).stderr
    file.write_text("prot = 1")
    assert "prot: unknown key" in words(run(*asked, status=1).stderr)
    data = tmp_path / "data"
    file.write_text(as_toml({"data": str(data), "context": 4}))
    assert "there is no journal in this folder" in words(run(*asked, status=1).stderr)
    run_service(config(data), lambda service: add_articles(service, 2))
    out.mkdir()
    assert "already exists" in words(run(*asked, status=1).stderr)
    out.rmdir()
    # A configuration that no service could go on with: then it is another one's.
    file.write_text(as_toml({"data": str(data), "context": 5}))
    assert "context: the journal was begun with 4, not 5" in words(run(*asked, status=1).stderr)
    file.write_text(as_toml({"data": str(data), "context": 4, "policy": {"name": "ucb"}}))
    assert "pool 'front' was begun with" in words(run(*asked, status=1).stderr)
    file.write_text(as_toml({"journal": {"url": "postgresql://db.example/topstory"}}))
    error = words(run(*asked, status=1).stderr)
    assert "PostgreSQL; use its own backup" in error
    assert "pg_dump --schema=topstory" in error
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "topstory.toml"]
    file.write_text(as_toml({"context": 4}))
    assert answer(*asked, "--data", data)["record"] == 4
    assert "records up to 4 (20" in run(*asked[:1], f"{out}-2", *asked[2:], "--data", data).stdout


def test_a_damaged_journal_is_not_taken_for_a_backup(tmp_path: Path) -> None:
    settings = config(tmp_path / "data")
    run_service(settings, lambda service: add_articles(service, 200))
    path = tmp_path / "data" / "journal.sqlite"
    content = bytearray(path.read_bytes())
    content[8192:16384] = bytes(8192)
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"cannot be copied: .*malformed"):
        back_up(settings, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_commands_of_the_page_back_up_and_restore(tmp_path: Path) -> None:
    data = tmp_path / "topstory-data"
    (tmp_path / "topstory.toml").write_text(as_toml({"data": "topstory-data", "context": 4}))
    run_service(config(data), lambda service: add_articles(service, 2))
    before = copied(data)[0].fingerprint()
    page = PAGE.read_text("utf-8")
    backing, restoring = (each.body for each in fences(page) if each.language == "console")
    commands(backing, tmp_path)
    shutil.rmtree(data)
    commands(restoring, tmp_path)
    assert copied(data)[0].fingerprint() == before


def commands(script: str, folder: Path) -> None:
    """Run its lines there."""
    installed = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in re.findall(r"^\$ (.*)", script, re.MULTILINE):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env={**os.environ, "PATH": installed},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (command, done.stderr)
