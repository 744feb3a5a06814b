"""Small logs on disk, made once."""

from pathlib import Path

import numpy as np
import pytest

from topstory.events import EventLog
from topstory.events.simulator import TodayModule

EVENTS = 20_000


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of logs: uniform, explored, plain, biased, recorded, empty."""
    folder = tmp_path_factory.mktemp("logs")
    world = TodayModule(seed=0, users=2_000)
    explored, log = world.random_log(5_000, "2008-09-01"), world.random_log(EVENTS)
    explored.write(folder / "explored")
    log.write(folder / "uniform")
    log[:0].write(folder / "empty")
    random = np.random.default_rng(0)
    _by_dice(random, None).write(folder / "plain")
    _by_dice(random, [0.5, 0.3, 0.2]).write(folder / "biased")
    _by_dice(random, [0.5, 0.3, 0.2], recorded=True).write(folder / "recorded")
    return folder


def _by_dice(
    random: np.random.Generator, share: list[float] | None, recorded: bool = False
) -> EventLog:
    """No article features, no times, two users, and pools of three or two of the articles."""
    events, shares = 4_000, np.array(share or [1 / 3] * 3)
    pools = [["a", "b", "c"], ["b", "c"]]
    pool = random.random(events) < 0.3
    position = np.where(
        pool,
        random.random(events) < 0.5,
        random.choice(3, events, p=shares),
    )
    shown = [pools[int(p)][at] for p, at in zip(pool, position, strict=True)]
    users = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])[random.integers(2, size=events)]
    return EventLog.from_arrays(
        users,
        pools,
        pool.astype(int),
        shown,
        random.random(events) < 0.2,
        propensity=np.where(pool, 0.5, shares[position]) if recorded else None,
    )
