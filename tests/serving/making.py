"""Services in a temporary folder, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pytest

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest, DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import SECOND, Clock
from topstory.serving.journal.sqlite import SqliteJournal
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.data_folder import DataFolder, open_folder
from topstory.serving.state.recovery.recovery import Starts, recover
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.state.state import State

T = TypeVar("T")
SIGNER = Signer({"k1": bytes(32)})
D, M = 4, 3


def config(folder: Path, **overrides: Any) -> Config:
    """Four numbers a context, everything else by default."""
    base: dict[str, Any] = {
        **{"data": str(folder), "context": D, "policy": {"name": "linucb-hybrid"}},
        "bucket_secret": "the same in every folder",
    }
    return msgspec.convert({**base, **overrides}, Config)


class Made:
    """A service, what it was opened with, and how to let it go as a crash would."""

    def __init__(self, settings: Config) -> None:
        self.folder: DataFolder = open_folder(settings)
        self.service = Service(self.folder.config, self.folder, SIGNER)

    def crash(self) -> None:
        """End without saving anything."""
        self.service.close()
        self.folder.close()


def run(settings: Config, work: Callable[[Service], Awaitable[T]]) -> T:
    """Open a service, do something with it, and let it crash."""
    made = Made(settings)

    async def inside() -> T:
        try:
            return await work(made.service)
        finally:
            await made.service.commits.drain()

    try:
        return asyncio.run(inside())
    finally:
        made.crash()


def folded(settings: Config) -> State:
    """The state by a fresh fold of the whole journal, snapshots aside."""
    folder = Path(settings.data)
    empty = Snapshots(folder / "no-snapshots")
    journal = SqliteJournal(folder / "journal.sqlite")
    try:
        return recover(journal, empty, Starts(folder / "start"), settings.context)
    finally:
        journal.close()


def visitor(random: np.random.Generator) -> tuple[float, ...]:
    """A context: memberships that sum to 1, and the constant."""
    return (*random.dirichlet(np.full(D - 1, 0.4)).tolist(), 1.0)


async def add_articles(service: Service, count: int = 5, pool: str = "front") -> None:
    random = np.random.default_rng(7)
    for number in range(count):
        features = (*random.dirichlet(np.full(M - 1, 0.4)).tolist(), 1.0)
        await service.put_article(pool, f"article-{number}", ArticleRequest(features=features))


async def visits(service: Service, count: int, seed: int = 0, paid: float = 0.5) -> list[Decision]:
    """Visitors all at once; some of them click."""
    random = np.random.default_rng(seed)
    asked = [DecideRequest(user=visitor(random)) for _ in range(count)]
    made = await asyncio.gather(*(service.decide(each) for each in asked))
    clicked = random.random(count) < paid
    await asyncio.gather(
        *(
            service.feedback(FeedbackRequest(decision=each.decision, payoff=1.0))
            for each, click in zip(made, clicked, strict=True)
            if click
        )
    )
    return list(made)


def stopped(service: Service) -> list[int]:
    """Stop the service's clock; the time is what the list says."""
    wall = [service.clock.now() + SECOND]
    service.ledger.clock = Clock(service.clock.now(), wall=lambda: wall[0], steady=lambda: wall[0])
    return wall


def refused(caught: pytest.ExceptionInfo[ApiError]) -> tuple[int, str]:
    """The status and the reason."""
    return caught.value.status, caught.value.reason
