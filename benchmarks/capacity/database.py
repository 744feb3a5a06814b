"""What a record takes of a database: bytes of its log and its tables, and the time of a batch."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from benchmarks.capacity.costs import Costs
from benchmarks.fleet import database_cpu, learner_config
from topstory.serving.fleet.inbox import Batch, Inbox, NewDecision, NewPayoff
from topstory.serving.fleet.learner.fold import Fold
from topstory.serving.journal.clock import SECOND, Clock
from topstory.serving.journal.records import Decided
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.data_folder import open_folder

ROWS = 256  # in a batch


class DatabaseFacts(NamedTuple):
    """Measured."""

    alone: float  # seconds for a batch of one row, its commit included: the least, with no wait
    costs: Costs  # with the bytes, and the time of a batch, that were measured
    inbox_row: float  # bytes of the table and its indexes
    journal_row: float


def measured(folder: Path, url: str, server: str, batches: int) -> DatabaseFacts:
    """Hand decisions and payoffs in, and let a learner take them."""
    opened = open_folder(learner_config(folder, url))
    service = Service(opened.config, opened, Signer({"a": bytes(32)}))
    inbox = Inbox(url, 5.0, 60.0)
    fold = Fold(opened.config, service.ledger, service.sequencer.influence, inbox)
    article, random = next(iter(service.state.pools["front"].articles)), np.random.default_rng(1)
    node, now, number, rows = inbox.new_node("bench"), Clock().now(), 0, batches * ROWS

    def log_end() -> int:
        return int(inbox.run("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")[0][0])

    def size(table: str) -> int:
        return int(inbox.run(f"SELECT pg_total_relation_size('topstory.{table}')")[0][0])

    def hand_in(decisions: list[NewDecision], payoffs: list[NewPayoff]) -> tuple[int, float]:
        nonlocal number
        number += 1
        began = perf_counter()
        first = inbox.hand_in(node, Batch(number, now, 0, decisions, payoffs)).first
        return first, perf_counter() - began

    def some(count: int) -> list[NewDecision]:
        made = []
        for user in random.dirichlet(np.ones(5), count):
            given = np.append(user, 1.0).tobytes()
            record = Decided(
                *("front", given, article, 0, 0.05, now + 3_600 * SECOND, 1), teaches=True
            )
            made.append(NewDecision("front", 10**9, None, record))
        return made

    async def drain() -> None:
        while await fold.round():
            pass
        await service.commits.drain()

    used = database_cpu(server)
    alone = min(hand_in(some(1), [])[1] for _ in range(10 * batches))
    batch = (database_cpu(server) - used) / (10 * batches) - Costs().database_row
    asyncio.run(drain())
    begun = [log_end(), size("inbox"), size("journal")]
    made = [hand_in(some(ROWS), [])[0] for _ in range(batches)]
    decided = log_end()
    asyncio.run(drain())
    folded = log_end()
    for first in made:
        hand_in([], [NewPayoff(first + place, 0, 1.0, "web") for place in range(ROWS)])
    paid = log_end()
    asyncio.run(drain())
    ended = [log_end(), size("inbox"), size("journal")]
    inbox.close()
    service.close()
    opened.close()
    costs = replace(
        Costs(),
        batch=max(0.0, batch),
        decision_bytes=(decided - begun[0]) / rows,
        folded_decision_bytes=(folded - decided) / rows,
        payoff_bytes=(paid - folded) / rows,
        folded_payoff_bytes=(ended[0] - paid) / rows,
    )
    return DatabaseFacts(
        alone,
        costs,
        (ended[1] - begun[1]) / (2 * rows),
        (ended[2] - begun[2]) / (2 * rows),
    )
