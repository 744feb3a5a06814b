"""A copy that is made in steps is the state as it was when it began, to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.serving.making import add_articles, config, run, visits

import topstory as ts
from topstory.models import linear
from topstory.serving.journal.records import ArticleFacts, Decided
from topstory.serving.service.service import Service
from topstory.serving.state import state_copy
from topstory.serving.state.pool import Pool
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.state.state_copy import PolicyCopying, StateCopy, StateCopying


@pytest.mark.parametrize("policy", ["linucb-disjoint", "linucb-hybrid", "ucb"])
def test_a_copy_in_steps_is_of_the_moment_when_it_began(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_copy, "STEP_SECONDS", 0.0)  # one article at a time

    async def work(service: Service) -> None:
        await add_articles(service, 24)
        await visits(service, 100)
        before = written(StateCopy.of(service.state), tmp_path / "before")
        steps = 0
        with StateCopying(service.state) as copying:
            while copying.step():
                steps += 1
                await visits(service, 3, seed=steps)
                if steps == 5:
                    await service.remove_article("front", "article-20")
                    await add_articles(service, 30)  # all of them; the arrays have to grow
        assert steps == (0 if policy == "ucb" else 5)
        assert written(copying.copy, tmp_path / "steps") == before
        assert not service.state.pools["front"].sketches

    run(config(tmp_path / "data", policy={"name": policy}), work)


def test_a_trial_that_changes_all_articles_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the model finds another ridge for all."""
    monkeypatch.setattr(linear, "MIN_ARTICLES", 2)
    monkeypatch.setattr(linear, "MIN_TRIALS", 10)
    pool = Pool("front", ts.policy("linucb-disjoint", ridge="auto"), 3)
    for number in range(3):
        pool.place(ArticleFacts(f"{number}"), number)
    random = np.random.default_rng(0)
    copying = PolicyCopying(pool.policy)
    pool.sketches.append(copying)
    before = pool.policy.model.arrays()["A"][2].copy()
    for number in range(200):  # none of them is of the last article
        user = np.array([*random.random(2), 1.0]).tobytes()
        pool.show(Decided("front", user, f"{number % 2}", 0, 0.5, 1, number, teaches=True))
    pool.learn()
    assert not np.array_equal(pool.policy.model.arrays()["A"][2], before)
    np.testing.assert_array_equal(copying.copy.model.arrays()["A"][2], before)


def written(copy: StateCopy, folder: Path) -> dict[str, bytes]:
    """The files of a snapshot."""
    where = Snapshots(folder).write(copy)
    return {path.name: path.read_bytes() for path in where.iterdir()}
