"""`ts.train`: every event teaches, and the last part of the log judges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.engines.apart import ApartEngine
from tests.policies.comparing import same_model as same
from tests.worlds import HOUR

import topstory as ts
from topstory.evaluation.training import MAX_WEIGHT
from topstory.events import EventLog
from topstory.policies import sum_learner
from topstory.policies.log_learner import learn_log

CHANCES = np.array([[0.6, 0.2], [0.1, 0.4]])  # of two kinds of users and two articles


def personalised_log(events: int, seed: int = 0, recorded: bool = True) -> EventLog:
    """Each article was shown mostly to those who like it."""
    random = np.random.default_rng(seed)
    kinds = random.integers(2, size=events)
    liked = random.random(events) < 0.85
    shown = np.where(liked, kinds, 1 - kinds)
    return EventLog.from_arrays(
        np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])[kinds],
        [["a", "b"]],
        np.zeros(events, int),
        np.array(["a", "b"])[shown],
        random.random(events) < CHANCES[kinds, shown],
        timestamps=HOUR * np.arange(events),
        propensity=np.where(liked, 0.85, 0.15) if recorded else None,
    )


def test_a_linear_model_learns_the_truth_from_a_personalised_log() -> None:
    """20,000 events; the rarest pair has 1,500, so that 0.07 is over 5 standard deviations."""
    training = ts.train(ts.policy("linucb-disjoint"), personalised_log(20_000))
    for kind, user in enumerate(([1.0, 0.0, 1.0], [0.0, 1.0, 1.0])):
        found = training.policy.estimates(user, ["a", "b"])
        np.testing.assert_allclose(found, CHANCES[kind], atol=0.07)


def test_weights_correct_an_average_and_without_them_it_is_wrong() -> None:
    """The truth is the mean over users, 0.35 and 0.3; without weights it is 0.525 and 0.37."""
    log = personalised_log(20_000)
    weighted = ts.train(ts.policy("ucb"), log, weights="propensity")
    with pytest.warns(ts.NotUniformWarning, match="weights='propensity'"):
        plain = ts.train(ts.policy("ucb"), log)
    user, pool = [1.0, 0.0, 1.0], ["a", "b"]
    np.testing.assert_allclose(weighted.policy.estimates(user, pool), [0.35, 0.3], atol=0.05)
    np.testing.assert_allclose(plain.policy.estimates(user, pool), [0.525, 0.37], atol=0.05)
    weights = 1 / (2 * np.where(log.propensity > 0.5, 0.85, 0.15))
    expected = weights.sum() ** 2 / (weights**2).sum()
    assert weighted.effective_events == pytest.approx(expected, rel=1e-5)
    assert (plain.effective_events, weighted.capped) == (20_000, 0)


def test_weights_are_limited() -> None:
    log = EventLog.from_arrays(
        np.ones((100, 1)),
        [["a", "b"]],
        np.zeros(100, int),
        ["a"] * 99 + ["b"],
        np.ones(100),
        propensity=[0.999] * 99 + [0.001],
    )
    training = ts.train(ts.policy("ucb"), log, weights="propensity", held_out=0)
    assert training.capped == 1
    assert training.policy.model.state.shows[1, 0] == MAX_WEIGHT


def test_the_last_part_judges_what_the_rest_taught() -> None:
    log = personalised_log(3_000)
    policy = ts.policy("linucb-disjoint", alpha=0.2)
    training = ts.train(policy, log, held_out=0.2)
    taught = policy.copy()
    learn_log(taught, log[:2400])
    alone = ts.replay(taught, log[2400:], size=0.0)
    assert training.held_out is not None
    assert training.held_out.deployment.ctr == alone.deployment.ctr
    assert training.held_out.learning.trials == alone.learning.trials
    assert training.held_out.deployment.relative_ctr > 1.1
    assert (training.events, training.held_out_events, training.refitted) == (3000, 600, True)
    learn_log(taught, log[2400:])
    assert same(training.policy, taught)
    assert policy.model.dimension is None  # the one given is not changed


def test_without_refit_the_held_out_part_is_not_learned() -> None:
    log = personalised_log(1_000)
    training = ts.train(ts.policy("linucb-disjoint"), log, held_out=0.3, refit=False)
    taught = ts.policy("linucb-disjoint")
    learn_log(taught, log[:700])
    assert same(training.policy, taught)
    assert (training.events, training.refitted) == (700, False)


def test_nothing_need_be_held_out() -> None:
    training = ts.train(ts.policy("linucb-disjoint"), personalised_log(200), held_out=0)
    assert (training.held_out, training.events, training.refitted) == (None, 200, False)


@pytest.mark.parametrize("weights", ["none", "propensity"])
def test_a_folder_is_learned_file_by_file_with_the_same_bits(tmp_path: Path, weights: str) -> None:
    log = personalised_log(500)  # an hour apart: 21 days, a file for each
    log.write(tmp_path / "log")
    assert len(list((tmp_path / "log" / "events").iterdir())) == 21
    policy, followed = ts.policy("linucb-hybrid"), []
    folder = ts.train(
        policy,
        tmp_path / "log",
        weights=weights,
        progress=lambda what, done, total: followed.append((done, total)),
    )
    memory = ts.train(policy, log, weights=weights)
    assert same(folder.policy, memory.policy)
    assert folder.held_out is not None
    assert memory.held_out is not None
    assert folder.held_out.deployment.ctr == memory.held_out.deployment.ctr
    assert (folder.events, followed[-1]) == (500, (500, 500))


@pytest.mark.parametrize("name", ["linucb-hybrid", "ucb"])
def test_workers_that_read_parts_by_themselves_teach_the_same_bits(
    name: str, tmp_path: Path
) -> None:
    log = personalised_log(500)
    log.write(tmp_path / "log")
    policy = ts.policy(name)
    here, there = (
        ts.train(policy, tmp_path / "log", weights="propensity", engine=each)
        for each in ("serial", ApartEngine())
    )
    assert same(here.policy, there.policy)
    for fact in ("events", "effective_events", "capped", "payoffs"):
        assert getattr(here, fact) == getattr(there, fact)


def test_a_policy_that_forgets_is_trained_where_the_command_runs(tmp_path: Path) -> None:
    log = personalised_log(200)
    log.write(tmp_path / "log")
    policy = ts.policy("linucb-disjoint", half_life=24.0)
    here, there = (
        ts.train(policy, tmp_path / "log", held_out=0, engine=each)
        for each in ("serial", ApartEngine())
    )
    assert same(here.policy, there.policy)


def test_a_trained_policy_is_trained_further() -> None:
    log = personalised_log(400)
    first = ts.train(ts.policy("linucb-disjoint"), log[:200], held_out=0)
    both = ts.train(first.policy, log[200:], held_out=0)
    assert same(both.policy, ts.train(ts.policy("linucb-disjoint"), log, held_out=0).policy)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"held_out": 1.0}, "held_out must be a share from 0 to below 1, got 1.0"),
        ({"held_out": 0.99}, "leaves nothing to learn"),
        ({"weights": "some"}, "weights must be 'none' or 'propensity', got 'some'"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ts.train(ts.policy("ucb"), personalised_log(20, recorded=False), **arguments)  # type: ignore[arg-type]


def test_what_cannot_learn_is_refused() -> None:
    log = personalised_log(20)
    with pytest.raises(ValueError, match="learns nothing from trials"):
        ts.train(ts.policy("random"), log)
    with pytest.raises(TypeError, match=r"policy must be a topstory.Policy"):
        ts.train("ucb", log)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the log has no events"):
        ts.train(ts.policy("ucb"), log[:0])
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        ts.train(ts.policy("ucb"), "no-such-folder")


def test_numbers_that_models_do_not_take_are_refused_before_they_are_learned() -> None:
    log = EventLog.from_arrays([[1e25]] * 3, [["a"]], [0] * 3, ["a"] * 3, [0, 0, 1])
    with pytest.raises(ValueError, match="policies take numbers up to 1e\\+20"):
        ts.train(ts.policy("linucb-disjoint"), log)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        *((name, "propensity") for name in ("ucb", "ucb-seg", "linucb-disjoint", "linucb-hybrid")),
        *((name, "none") for name in ("linucb-disjoint", "linucb-hybrid")),
    ],
)
def test_sums_over_parts_teach_the_same_on_every_engine(
    name: str, weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sum_learner, "PART_EVENTS", 300)
    log = recorded_log()
    policy = ts.policy(name)
    plain, serial, local = (
        ts.train(policy, log, weights=weights, held_out=0, engine=engine).policy
        for engine in (None, "serial", "local")
    )
    pool, x = list(log.article_ids), log.context(3)
    np.testing.assert_allclose(serial.estimates(x, pool), plain.estimates(x, pool), atol=1e-9)
    np.testing.assert_allclose(serial.widths(x, pool), plain.widths(x, pool), atol=1e-9)
    assert serial.trials == plain.trials
    for field, array in serial.model.learned().items():
        np.testing.assert_array_equal(local.model.learned()[field], array)


def test_a_wide_hybrid_model_learns_by_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    log, policy = recorded_log(), ts.policy("linucb-hybrid")
    alone = ts.train(policy, log).policy
    monkeypatch.setattr(sum_learner, "MAX_SHARED_BY_EVENT", 4 * 3 - 1)
    wide, summed = (ts.train(policy, log, engine=engine).policy for engine in (None, "serial"))
    assert same(wide, summed)
    assert not same(wide, alone)


def test_warm_policies_learn_event_by_event_only() -> None:
    with pytest.raises(TypeError, match="event by event"):
        ts.train(
            ts.policy("ucb-warm", offset={}), recorded_log(), weights="propensity", engine="serial"
        )


def recorded_log() -> ts.EventLog:
    random = np.random.default_rng(4)
    users = np.column_stack([random.dirichlet(np.ones(3), 1_000), np.ones(1_000)])
    features = {f"a{i}": [float(i % 2), i / 5, 1.0] for i in range(5)}
    chances = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    shown = random.choice(5, 1_000, p=chances)
    return ts.EventLog.from_arrays(
        users,
        [list(features)],
        np.zeros(1_000, int),
        [f"a{i}" for i in shown],
        random.random(1_000) < 0.3,
        articles=features,
        propensity=chances[shown],
    )
