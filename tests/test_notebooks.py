"""What a tutorial needs is in `ts`, shows itself, and names the argument that is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

import topstory as ts

matplotlib.use("Agg")
LOGS: Any = "logs"
NAME: Any = "ucb"
THREE: Any = 3


@pytest.fixture(scope="module")
def log() -> ts.EventLog:
    return ts.TodayModule(seed=0, users=500).random_log(3_000)


def test_dir_lists_the_public_names_and_nothing_else() -> None:
    assert set(dir(ts)) == {*ts.__all__, "__version__"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, _: ts.replay(p, LOGS), "log must be an EventLog, got 'logs': read the folder"),
        (lambda _, log: ts.replay(NAME, log), "policy must be a Policy, or an object with choose"),
        (lambda _, log: ts.replay(NAME, log), "ts.policy('ucb') makes it"),
        (lambda *_: ts.compare("ucb", LOGS), "log must be an EventLog, got 'logs'"),
        (lambda *_: ts.tune("ucb", THREE), "log must be an EventLog, got int"),
        (lambda *_: ts.inspect(LOGS), "log must be an EventLog, got 'logs'"),
    ],
)
def test_an_error_names_the_argument(call: Any, message: str, log: ts.EventLog) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        call(ts.policy("ucb"), log)


def test_results_draw_and_show_themselves(log: ts.EventLog) -> None:
    result = ts.replay(ts.policy("ucb", alpha=0.3), log)
    axes = result.plot()
    assert axes.get_ylabel() == "CTR"
    assert len(axes.lines) == 3  # both buckets, and random
    assert result.plot(axes=axes) is axes
    untimed = ts.replay(ts.policy("ucb"), ts.EventLog.from_arrays(
        np.ones((400, 1)), [["a", "b"]], [0] * 400, ["a", "b"] * 200, np.arange(400) / 9
    ))  # fmt: skip
    assert untimed.plot().get_ylabel() == "payoff"
    assert "deployment" in result._repr_html_()
    assert "payoff" in untimed._repr_html_()
    assert "ucb" in ts.compare("ucb", log, repeats=1)._repr_html_()


def test_batches_decide_as_one_by_one(log: ts.EventLog) -> None:
    pool: Any = [1, 2, 3]
    one, many = (ts.policy("egreedy-disjoint", epsilon=0.5, seed=3) for _ in range(2))
    second: Any = 2
    for policy in (one, many):
        policy.learn([0.5, 1.0], second, payoff=1)
        policy.learn([0.5, 1.0], "3", payoff=0)
    users = np.column_stack([np.linspace(0, 1, 9), np.ones(9)])
    chosen = many.choose_all(users, pool)
    assert chosen == [one.choose(user, pool) for user in users]
    assert all(choice.article in pool for choice in chosen)  # as they were given
    expected = [one.estimates(user, ["1", "2", "3"]).tolist() for user in users]
    assert many.estimates_all(users, pool).tolist() == expected
    with pytest.raises(ValueError, match=r"users must have a row for each user, \(n, d\)"):
        many.choose_all([0.5, 1.0], pool)


@pytest.mark.parametrize(
    "call",
    [
        lambda log: ts.replay(ts.policy("ucb"), log),
        lambda log: ts.compare("ucb", log),
        lambda log: ts.tune("ucb", log),
        lambda log: ts.choose(log),
        lambda log: ts.dr_ns(ts.policy("ucb"), log),
        lambda log: ts.fit_prior(log),
        lambda log: ts.inspect(log),
        lambda log: ts.FeatureBuilder().fit(log),
    ],
)
def test_a_folder_in_the_place_of_a_log_says_what_to_do(call: Any) -> None:
    with pytest.raises(TypeError, match=r"^log must be an EventLog, got 'logs': read the folder"):
        call("logs")


def test_a_study_names_the_log_that_is_none(tmp_path: Path) -> None:
    given: Any = "logs"
    with pytest.raises(TypeError, match=r"^tuning must be an EventLog, got 'logs': read the"):
        ts.study(tmp_path / "out", tuning=given, evaluation=given)
