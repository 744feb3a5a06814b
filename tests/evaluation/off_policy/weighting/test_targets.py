"""A policy's probabilities over a log, by kernels, are those that it says event by event."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.models.making_priors import some_prior
from tests.worlds import World

import topstory as ts
from topstory.evaluation.off_policy.weighting.targets import AskedTarget, target_of
from topstory.evaluation.replays.warm_start import needs_offset, needs_prior
from topstory.models.input_range import NotFiniteError
from topstory.policies.registry import REGISTRY

POLICIES = [name for name, each in REGISTRY.items() if name != "omniscient"]


def small_log() -> ts.EventLog:
    random = np.random.default_rng(5)
    world = World(
        users=np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.3, 0.7, 1.0]]),
        features=np.column_stack([random.normal(size=(5, 2)), np.ones(5)]),
        chances=random.uniform(0.1, 0.6, (3, 5)),
    )
    return world.log(300, [[0, 1, 2], [1, 2, 3, 4], [0, 4]], random)


def trained(name: str, log: ts.EventLog) -> ts.Policy:
    offset = dict.fromkeys(log.article_ids, np.full(3, 0.01))
    given: dict[str, Any] = {"offset": offset} if needs_offset(name) else {}
    if needs_prior(name):
        given["prior"] = some_prior(3, 3)
    policy = ts.policy(name, **given)
    return ts.train(policy, log[:150], held_out=0).policy if policy.model.learns else policy


@pytest.mark.parametrize("greedy", [True, False])
@pytest.mark.parametrize("name", POLICIES)
def test_kernels_give_the_probabilities_that_the_policy_says(name: str, greedy: bool) -> None:
    log = small_log()
    policy = trained(name, log)
    asked = policy.copy()
    if greedy:
        asked.explorer = ts.Greedy()
    target, twin = target_of(policy, log, greedy), AskedTarget(asked, log)
    begins, chances = target.all(20, 300)
    np.testing.assert_allclose(chances, twin.all(20, 300)[1], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(target.shown(20, 300), twin.shown(20, 300), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(np.add.reduceat(chances, begins), 1.0)


def test_a_score_that_is_no_number_is_an_error_that_names_the_event() -> None:
    log = small_log()
    policy = trained("egreedy-disjoint", log)
    policy.model.state.v[policy.model.roster.slot("article-3")] = np.nan
    first = next(t for t in range(300) if "article-3" in log[t].pool)
    for ask in (target_of(policy, log, True).shown, target_of(policy, log, True).all):
        with pytest.raises(NotFiniteError, match=f"at event {first}"):
            ask(0, 300)


@pytest.mark.parametrize("given", [[0.5, 0.6, 0.0], [1.0], [1.5, -0.5, 0.0], [np.nan] * 3])
def test_probabilities_that_are_none_are_refused(given: list[float]) -> None:
    class Bad:
        def probabilities(self, user: object, pool: object) -> list[float]:
            return given

    with pytest.raises(ValueError, match=r"event 0: probabilities\(user, pool\) must give 3"):
        target_of(Bad(), small_log(), True).shown(0, 1)
