"""The picture of the paper's Table 1, on logs small enough for every run of the tests.

A week of 1.8 million events is a twentieth of the paper's; as many trials to learn from as 1 % and
5 % of the paper's week have are a fifth and all of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import topstory as ts

EVENTS, PAPER = 1_800_000, 36_000_000


# Chosen by `docs/generate/measure_sharing.py` on the deployment CTR of worlds 0 to 3 alone.
WORLDS = range(40, 46)
CHOSEN: dict[float, dict[str, list[dict[str, float]]]] = {
    0.01: {
        "linucb-hybrid": [{"alpha": 1.0, "ridge": 300}],
        "linucb-disjoint": [{"alpha": 0.2}, {"alpha": 0.4, "ridge": 30}],
        "ucb-seg": [{"alpha": 0.2}],
    },
    0.05: {
        "linucb-hybrid": [{"alpha": 0.6, "ridge": 300}],
        "linucb-disjoint": [{"alpha": 0.4}, {"alpha": 1.0, "ridge": 100}],
        "ucb-seg": [{"alpha": 0.6}],
    },
}


@pytest.fixture(scope="module")
def weeks() -> list[ts.EventLog]:
    """The same week in six worlds."""
    worlds = [ts.TodayModule(seed, users=20_000) for seed in WORLDS]
    return [world.random_log(EVENTS, "2009-05-03", 7) for world in worlds]


def relative(
    weeks: list[ts.EventLog], size: float, name: str, **parameters: Any
) -> npt.NDArray[np.float64]:
    """(weeks, 2) relative CTRs: deployment and learning."""
    share = min(1.0, size * PAPER / EVENTS)
    results = [ts.replay(ts.policy(name, **parameters), week, share) for week in weeks]
    return np.array(
        [
            (found.deployment.ctr / week.ctr, found.learning.ctr / week.ctr)
            for found, week in zip(results, weeks, strict=True)
        ]
    )


def clearly_above_zero(gaps: npt.NDArray[np.float64]) -> bool:
    """In deployment and in learning, the 95 % interval of the mean over the weeks."""
    errors = gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps))
    return bool((gaps.mean(axis=0) > stats.t.ppf(0.975, len(gaps) - 1) * errors).all())


def test_context_pays(weeks: list[ts.EventLog]) -> None:
    free = relative(weeks, 1.0, "ucb", alpha=0.3)
    assert free.mean(axis=0)[0] > 1.3
    assert clearly_above_zero(relative(weeks, 1.0, "linucb-disjoint", alpha=0.3) - free)


@pytest.mark.parametrize("size", CHOSEN)
def test_with_little_data_sharing_pays(weeks: list[ts.EventLog], size: float) -> None:
    """Hybrid is ahead of disjoint and segmented models in both buckets, where ridges are fitted.

    It is ahead of disjoint models with the paper's ridge of 1 and with theirs. With a ridge of 1
    for itself it is not (docs/concepts/simulator.md says why).
    """
    (parameters,) = CHOSEN[size]["linucb-hybrid"]
    hybrid = relative(weeks, size, "linucb-hybrid", **parameters)
    for rival in ("linucb-disjoint", "ucb-seg"):
        for theirs in CHOSEN[size][rival]:
            assert clearly_above_zero(hybrid - relative(weeks, size, rival, **theirs))
