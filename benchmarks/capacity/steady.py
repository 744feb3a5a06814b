"""How large a fleet's database stays under steady traffic: what comes in, and what goes out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from benchmarks.fleet import learner_config
from topstory.serving.config.schema import Config
from topstory.serving.fleet.inbox import Batch, Inbox, NewDecision, NewPayoff
from topstory.serving.fleet.learner import fold as fold_module
from topstory.serving.fleet.learner.fold import Fold
from topstory.serving.journal.clock import Clock
from topstory.serving.journal.records import Decided
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.data_folder import open_folder
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.upkeep.keeper import DAY, Keeper

BATCH = 500


class Size(NamedTuple):
    """After so many days of traffic."""

    days: int
    rows: int  # that came in so far
    inbox: float  # bytes, with indexes
    journal: float
    inbox_rows: int
    journal_rows: int


def steady(folder: Path, url: str, days: int, batches: int) -> list[Size]:
    """Days of so many batches of decisions, each paid for; the clock is set, nobody waits.

    Autovacuum comes once a minute and would see all days as one, so each day ends with a VACUUM.
    """
    settings = learner_config(folder, url)
    journal = msgspec.structs.replace(settings.journal, archive_days=1.0)
    settings = msgspec.convert(
        msgspec.to_builtins(
            msgspec.structs.replace(settings, journal=journal, window_seconds=3_600.0)
        ),
        Config,
    )
    opened = open_folder(settings)
    service = Service(opened.config, opened, Signer({"a": bytes(32)}))
    inbox, number, sizes = Inbox(url, 5.0, 60.0), 0, list[Size]()
    fold = Fold(opened.config, service.ledger, service.sequencer.influence, inbox)
    keeper = Keeper(service, Snapshots(folder / "snapshots"))
    node, random = inbox.new_node("bench"), np.random.default_rng(1)
    article = next(iter(service.state.pools["front"].articles))

    async def day() -> None:
        nonlocal number
        now = service.clock.now()
        for _ in range(batches):
            users = np.column_stack([random.dirichlet(np.ones(5), BATCH), np.ones(BATCH)])
            made = [
                Decided("front", user.tobytes(), article, 0, 0.05, now + 3_600_000_000, 1, True)
                for user in users
            ]
            rows = [NewDecision("front", 10**9, None, each) for each in made]
            first = inbox.hand_in(node, Batch(number + 1, now, 0, rows, [])).first
            paid = [NewPayoff(first + place, 0, 1.0, "web") for place in range(BATCH)]
            inbox.hand_in(node, Batch(number + 2, now, 0, [], paid))
            number += 2
            while await fold.round():
                pass
        await service.commits.drain()
        await keeper.snapshot()
        while await keeper.archive():
            pass
        for table in ("inbox", "journal"):
            inbox.do(f"VACUUM topstory.{table}")
        service.ledger.clock = Clock(now + 2 * DAY)

    async def all_days() -> None:
        for passed in range(1, days + 1):
            await day()
            found = [
                inbox.run(f"SELECT pg_total_relation_size('topstory.{t}'), count(*) FROM {t}")[0]
                for t in ("inbox", "journal")
            ]
            (inboxed, inbox_rows), (journalled, journal_rows) = found
            came = passed * batches * BATCH * 2
            sizes.append(Size(passed, came, inboxed, journalled, inbox_rows, journal_rows))

    pause, fold_module.PURGE_SECONDS = fold_module.PURGE_SECONDS, 0.0
    try:
        asyncio.run(all_days())
    finally:
        fold_module.PURGE_SECONDS = pause
        inbox.close()
        service.close()
        opened.close()
    return sizes
