"""Learning a whole log is the same as learning its events one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.models.making_priors import some_prior
from tests.policies.comparing import same_model as same
from tests.worlds import HOUR

import topstory as ts
from topstory.events import EventLog
from topstory.models.linear import LinearModel
from topstory.policies.log_learner import learn_log
from topstory.policies.registry import REGISTRY, TUNED

ARTICLES = {f"a{i}": [float(i % 2), i / 5, 1.0] for i in range(5)}
LEARNERS = [  # a policy for each model: the explorer does not learn
    name for name, entry in REGISTRY.items() if entry.tuned == TUNED["alpha"]
]
ADDITIVE = [name for name in LEARNERS if REGISTRY[name].model.load().additive]
LINEAR = ["linucb-disjoint", "linucb-hybrid"]


def made(name: str) -> ts.Policy:
    offset: dict[str, Any] = {"offset": {"a0": [0.1, 0.2, 0.3, 0.4]}} if "warm" in name else {}
    prior: dict[str, Any] = {"prior": some_prior(4, 3)} if REGISTRY[name].from_prior else {}
    policy = ts.policy(name, **offset, **prior)
    for article, features in ARTICLES.items():
        policy.add_article(article, features)
    return policy


def log_of(kind: str, events: int = 400, name: str = "") -> EventLog:
    random = np.random.default_rng(3)
    users = random.random((events, 4)) * (1e6 if kind == "large" else 1.0)
    users[:, -1] = 1.0
    contexts = sparse.csr_array((users > 0.5).astype(float)) if kind == "sparse" else users
    payoffs = random.normal(size=events).round(1) * (random.random(events) < 0.5)
    return EventLog.from_arrays(
        contexts,
        [list(ARTICLES), ["a1", "a3"]],
        (np.arange(events) % 7 == 0).astype(int),
        np.where(np.arange(events) % 7 == 0, "a3", random.choice(list(ARTICLES), events)),
        payoffs.clip(0, 1) if name.startswith("log") else payoffs,  # of logistic models
        articles=ARTICLES,
        timestamps=HOUR * np.arange(events),
        exact=kind == "exact",
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "dense") for name in LEARNERS),
        *((name, kind) for name in ("ucb-seg", "linucb-hybrid") for kind in ("sparse", "exact")),
        *((name, "large") for name in LINEAR),
    ],
)
def test_it_equals_learning_event_by_event_to_the_bit(name: str, kind: str) -> None:
    log = log_of(kind, name=name)
    whole, single = made(name), made(name)
    learn_log(whole, log)
    for event in log:
        single.learn(event.user, event.shown, event.payoff)
    assert same(whole, single)
    assert whole.trials == single.trials == len(log)  # some explorers explore less as they grow
    assert getattr(whole.model, "factored", False) == (kind == "large")


def test_it_goes_on_where_the_policy_is() -> None:
    log = log_of("dense")
    parts, whole = made("linucb-hybrid"), made("linucb-hybrid")
    learn_log(parts, log[:150])
    learn_log(parts, log[150:])
    learn_log(whole, log)
    assert same(parts, whole)


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "dense") for name in ADDITIVE), ("linucb-disjoint", "sparse"), (LINEAR[1], "large")],
)
def test_a_weight_of_three_is_three_trials(name: str, kind: str) -> None:
    log = log_of(kind, 120)
    weighted, repeated = made(name), made(name)
    learn_log(weighted, log, np.full(len(log), 3.0))
    for event in log:
        for _ in range(3):
            repeated.learn(event.user, event.shown, event.payoff)
    for model in (weighted.model, repeated.model):
        if isinstance(model, LinearModel):
            model.weigh()  # a prior, at the same moment
    x = log.context(7)
    pool = list(ARTICLES)
    np.testing.assert_allclose(
        weighted.estimates(x, pool), repeated.estimates(x, pool), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(weighted.widths(x, pool), repeated.widths(x, pool), rtol=1e-9)


def test_offsets_that_are_a_function_are_learned_in_python() -> None:
    log = log_of("dense", 50)
    table = {article: np.array([0.1, 0.0, 0.0, 0.2]) for article in ARTICLES}
    called = ts.policy("ucb-warm", offset=lambda user, article: float(table[article] @ user))
    learn_log(called, log)
    looked_up = ts.policy("ucb-warm", offset=table)
    learn_log(looked_up, log)
    np.testing.assert_allclose(
        called.model.state.total[:5], looked_up.model.state.total[:5], rtol=1e-12
    )
    with pytest.raises(ValueError, match="give the offsets as a table"):
        learn_log(called, log, np.ones(len(log)))


def test_an_empty_log_teaches_nothing() -> None:
    policy = made("linucb-hybrid")
    learn_log(policy, replace(log_of("dense")[:0]))
    assert policy.model.state.clock.sum() == 0
