"""The Open Bandit Pipeline's dictionary: its rules kept, and the log to be had back from it.

The pipeline itself asks for an older Python than this project, so it is not run here. By hand,
obp 0.4.1 took an exported file, and its estimators found the values that the third test finds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.events.formats.test_exporting import KINDS, made
from tests.events.formats.whole_logs import assert_same_articles, assert_same_choices

from topstory.events import EventLog
from topstory.events.formats.exporting import export


def exported(log: EventLog, folder: Path) -> dict[str, Any]:
    """What a user of the pipeline loads."""
    [out] = export(log, "obp", folder / "week.npz")
    with np.load(out, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_arrays_are_as_the_pipeline_checks_them(tmp_path: Path, kind: dict[str, bool]) -> None:
    """After obp.utils.check_bandit_feedback_inputs, and the keys that obp.dataset documents."""
    found = exported(made(**kind), tmp_path)
    rounds, actions = int(found["n_rounds"]), int(found["n_actions"])
    assert (rounds, actions) == (200, 6)
    for name in ("action", "position", "reward", "pscore"):
        assert found[name].shape == (rounds,)
    assert found["context"].shape == (rounds, 9 if kind.get("sparse") else 3)
    assert found["action_context"].ndim == 2
    assert found["action_context"].shape[0] == actions
    for name in ("action", "position"):
        assert np.issubdtype(found[name].dtype, np.integer)
        assert found[name].min() >= 0
    assert found["action"].max() < actions
    for name in ("reward", "pscore", "context", "action_context"):
        assert found[name].dtype == np.float64
        assert np.isfinite(found[name]).all()
    assert ((found["pscore"] > 0) & (found["pscore"] <= 1)).all()
    assert len(set(found["article_ids"].tolist())) == actions


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("described", [True, False])
def test_a_log_of_one_pool_can_be_made_of_it_again(
    tmp_path: Path, recorded: bool, described: bool
) -> None:
    log = made(recorded=recorded, described=described, timed=False)
    log = log[log.pool == 1]
    pool = log.pools[1]
    one = EventLog.from_arrays(
        log.users,
        [pool],
        np.zeros(len(log), int),
        log.shown,
        log.payoff,
        articles={key: log.articles[key] for key in pool} if described else None,
        propensity=log.propensity,
    )
    found = exported(one, tmp_path)
    ids = found["article_ids"].tolist()
    again = EventLog.from_arrays(
        found["context"],
        [ids],
        found["position"],
        [ids[action] for action in found["action"]],
        found["reward"],
        articles=dict(zip(ids, found["action_context"], strict=True)) if described else None,
        propensity=found["pscore"],
    )
    assert_same_choices(again, one)
    assert_same_articles(again, one)
    np.testing.assert_array_equal(again.users, one.users)


def test_inverse_propensities_weigh_rewards_to_the_value_of_a_policy(tmp_path: Path) -> None:
    random, events = np.random.default_rng(0), 20_000
    rates, logging = np.array([0.1, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    shown = random.choice(3, events, p=logging)
    log = EventLog.from_arrays(
        np.ones((events, 1)),
        [["a", "b", "c"]],
        np.zeros(events, int),
        np.array(["a", "b", "c"])[shown],
        random.random(events) < rates[shown],
        propensity=logging[shown],
    )
    found = exported(log, tmp_path)
    for policy in np.array([[1, 1, 1], [0, 0, 3]]) / 3:  # uniform; always c
        weighted = policy[found["action"]] / found["pscore"] * found["reward"]
        # 4 standard errors are passed once in 16,000 times, and the seed is fixed.
        error = 4 * weighted.std() / events**0.5
        assert weighted.mean() == pytest.approx(policy @ rates, abs=error)
