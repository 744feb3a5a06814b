"""What front ends score from is what a fold of the journal in one process makes, to the bit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest
from tests.serving.fleet.test_pipeline import decide, fleet_config, fold_is_done, learning, pay
from tests.serving.making import visitor

from topstory.serving.api.messages import DecideRequest
from topstory.serving.config.schema import Config
from topstory.serving.fleet.database_time import DatabaseTime
from topstory.serving.fleet.front.process import Front
from topstory.serving.fleet.front.published import PublishedState, PublishedView
from topstory.serving.journal.clock import Clock
from topstory.serving.journal.connect import journal_of
from topstory.serving.state.recovery.recovery import Starts
from topstory.serving.state.state import State
from topstory.serving.workers.shared_memory.publisher import Publisher


class Page:
    """Where a publisher writes, for one reader."""

    next = 0

    def __init__(self) -> None:
        self.buffer = bytearray()

    def begin(self, length: int) -> bytearray:
        self.buffer = bytearray(length)
        return self.buffer

    def publish(self) -> None:
        """It is read when it is wanted."""


def folded_checksums(url: str, config: Config, folder: Path, numbers: Iterable[int]) -> list[int]:
    """The checksums of the models at these records, in their order, by a fold in one process."""
    state, found = State(config.context), []
    with closing(journal_of(url)) as journal:
        entries = list(journal.read())
    for number in sorted(numbers):
        due = ((entry, of) for entry, of in entries if state.number < entry.number <= number)
        state.apply(due, Starts(folder / "start").policy)
        view, page = PublishedView(config, DatabaseTime()), Page()
        pools = tuple(state.pools)
        Publisher(state, pools, Clock(after=state.at), 0.0, page, anew=True).publish()
        view.install(view.opened(1, 1, 0, bytes(page.buffer)))
        found.append(view.checksum)
    return found


@pytest.mark.parametrize("policy", ["linucb-hybrid", "linucb-disjoint"])
def test_every_model_that_a_front_end_scored_from_is_a_fold_of_the_journal_to_the_bit(
    tmp_path: Path, url: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after another machine has taken over, and from a snapshot."""
    settings = [
        fleet_config(tmp_path / name, url, policy={"name": policy}) for name in ("one", "two")
    ]
    random, seen = np.random.default_rng(2), dict[int, int]()
    install = PublishedView.install

    def noted(self: PublishedView, state: PublishedState) -> None:
        install(self, state)
        assert seen.setdefault(self.record, self.checksum) == self.checksum

    async def visit(fronts: list[Front]) -> None:
        async with fronts[0].background(), fronts[1].background():
            for turn in range(12):
                asked = [
                    decide(fronts[i % 2], DecideRequest(visitor(random))) for i in range(1 + turn)
                ]
                for place, made in enumerate(await asyncio.gather(*asked)):
                    await pay(fronts[place % 2], made.decision, float(place % 3 == 0))

    paid = 0
    for term, config in enumerate([*settings, settings[0]]):
        with learning(config), ExitStack() as stack:
            fronts = [Front(config) for _ in range(2)]
            for front in fronts:
                stack.callback(front.close)
            if not term:
                monkeypatch.setattr(PublishedView, "install", noted)
            asyncio.run(visit(fronts))
            paid += 78
            fold_is_done(url, paid)
    monkeypatch.setattr(PublishedView, "install", install)
    assert len(seen) > 10
    found = folded_checksums(url, settings[0], tmp_path / "one", seen)
    assert found == [seen[number] for number in sorted(seen)]
    assert len(set(found)) > 10
