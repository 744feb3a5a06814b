"""The database stays small: what nobody can ask for goes out as fast as it comes in."""

from __future__ import annotations

import asyncio
from pathlib import Path
from struct import pack

import pytest
from tests.serving.making import config

from topstory.serving.fleet.inbox import Batch, Inbox, NewDecision, NewPayoff
from topstory.serving.fleet.learner import fold as fold_module
from topstory.serving.fleet.learner.fold import MAX_FOLD, MAX_PURGED, Fold
from topstory.serving.journal.clock import Clock
from topstory.serving.journal.records import Cut, Decided, Paid
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.data_folder import open_folder
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.upkeep import keeper as keeper_module
from topstory.serving.upkeep.keeper import DAY, Keeper
from topstory.serving.upkeep.verification import verify

USER = pack("<4d", 0.1, 0.2, 0.3, 1.0)
ROWS, ROUNDS = 20, 12


def test_the_database_keeps_one_window_however_long_traffic_goes_on(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inbox is never empty when the learner looks; each round is a day after the last."""
    assert MAX_PURGED > MAX_FOLD, "or more comes in than goes out"
    monkeypatch.setattr(fold_module, "MAX_PURGED", 2 * ROWS + 1)
    monkeypatch.setattr(fold_module, "PURGE_SECONDS", 0.0)
    monkeypatch.setattr(keeper_module, "MAX_ARCHIVED_AT_ONCE", ROWS // 2)
    settings = config(
        tmp_path,
        journal={"url": url, "archive_days": 1},
        role="learner",
        demo=True,
        window_seconds=3_600,
    )
    opened = open_folder(settings)
    service = Service(opened.config, opened, Signer({"a": bytes(32)}))
    inbox = Inbox(url, 5.0, 60.0)
    node, number, article = (
        inbox.new_node("test"),
        0,
        next(iter(service.state.pools["front"].articles)),
    )
    fold = Fold(opened.config, service.ledger, service.sequencer.influence, inbox)
    keeper = Keeper(service, Snapshots(tmp_path / "snapshots"))
    sizes: list[tuple[int, int]] = []

    async def day() -> None:
        nonlocal number
        now = service.clock.now()
        made = Decided("front", USER, article, 0, 0.05, now + 3_600_000_000, 1, True)
        first = 0
        for decisions in (True, False):
            number += 1
            rows = [NewDecision("front", 10**9, None, made)] * ROWS if decisions else []
            paid = [NewPayoff(first + place, 0, 1.0, "web") for place in range(ROWS)]
            batch = Batch(number, now, 0, rows, [] if decisions else paid)
            first = inbox.hand_in(node, batch).first
        assert await fold.round()
        await service.commits.drain()
        await keeper.snapshot()
        while await keeper.archive():
            pass
        inboxed, journalled = (
            inbox.run(f"SELECT count(*) FROM {table}")[0][0] for table in ("inbox", "journal")
        )
        sizes.append((inboxed, journalled))
        service.ledger.clock = Clock(now + 2 * DAY)

    async def days() -> None:
        for _ in range(ROUNDS):
            await day()

    try:
        asyncio.run(days())
        records = [entry.record for entry, _ in service.journal.read()]
        state = service.state.fingerprint()
    finally:
        inbox.close()
        service.close()
        opened.close()
    lasting = sum(not isinstance(each, Decided | Paid | Cut) for each in records)
    day_of_records = 2 * ROWS + 1  # and a cut
    for inboxed, journalled in sizes[4:]:
        assert inboxed <= 2 * ROWS
        # Two days: the archive waits for the older of two snapshots.
        assert journalled <= lasting + 2 * day_of_records
    assert verify(url).records == len(records)  # the chain holds without what went
    again = open_folder(settings)
    rebuilt = Service(again.config, again, Signer({"a": bytes(32)}))
    assert rebuilt.state.fingerprint() == state
    rebuilt.close()
    again.close()
