"""Records applied in batches of any size give the same state, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.making_priors import some_prior
from tests.serving.making import D, M, Made, add_articles, config, run, visitor, visits
from tests.twins import StackedRidge

import topstory as ts
from topstory.policies.registry import REGISTRY
from topstory.serving.config.schema import TrafficConfig
from topstory.serving.journal.records import ArticleFacts, Decided, Paid
from topstory.serving.service.service import Service
from topstory.serving.state.decider import Decider
from topstory.serving.state.pool import Pool
from topstory.serving.state.recovery.recovery import Starts
from topstory.serving.state.state import State
from topstory.serving.state.traffic import Traffic

ARTICLES = ("rain", "sun", "wind")


def policy(name: str) -> ts.Policy:
    given: dict[str, Any] = {}
    if name.endswith("-warm"):
        given["offset"] = {"rain": np.linspace(-0.1, 0.1, D)}
    if name.endswith("-prior"):
        given["prior"] = some_prior(D, M)
    return ts.policy(name, **given)


def pool(name: str) -> Pool:
    made = Pool("front", policy(name), D)
    for number, article in enumerate(ARTICLES):
        made.place(ArticleFacts(article, (*[number / 3] * (M - 1), 1.0)), number)
    return made


@pytest.mark.parametrize("name", REGISTRY)
def test_what_is_learned_and_decided_together_is_as_one_by_one(name: str) -> None:
    together, plain = pool(name), pool(name).policy
    random = np.random.default_rng(3)
    for _ in range(6):
        for _ in range(20):
            user, article = visitor(random), str(random.choice(ARTICLES))
            decided = Decided(
                "front", np.array(user).tobytes(), article, 0, 1.0, 0, 0, teaches=True
            )
            together.show(decided)
            plain.shown(user, article)
            if random.random() < 0.5:
                payoff = float(random.random())
                together.pay(decided, Paid(99, payoff))
                plain.paid(user, article, payoff)
        together.learn()
        decider = Decider(together, Traffic(TrafficConfig(), "front"))
        users = [visitor(random) for _ in range(9)]
        buckets = random.integers(0, 3, 9).tolist()
        many = decider.decide_all(users, buckets, 70, 0)
        for place, (user, bucket) in enumerate(zip(users, buckets, strict=True)):
            assert decider.decide(user, bucket, 70 + place, 0) == many[place]
    learned = together.policy.model.learned()
    assert learned.keys() == plain.model.learned().keys()
    for field, array in plain.model.learned().items():
        np.testing.assert_array_equal(learned[field], array, field)


def test_a_payoff_is_for_the_features_that_its_article_had_when_it_was_decided() -> None:
    """Halves of trials that come after an edit, as a fleet's do, and some with half the weight."""
    made, random = pool("linucb-hybrid"), np.random.default_rng(4)
    features = {name: np.array(each.facts.features) for name, each in made.articles.items()}
    plain = StackedRidge(D, 1.0, 1.0, features)
    halves: list[tuple[Decided, dict[str, Any]]] = []  # with the features of that time
    for number in range(3, 150):
        if number % 20 == 0:
            name = ARTICLES[number // 20 % 3]
            features[name] = np.append(random.random(M - 1), 1.0)
            made.place(ArticleFacts(name, tuple(features[name].tolist())), number)
        user, name = visitor(random), str(random.choice(ARTICLES))
        weight = float(random.choice([0.5, 1.0]))
        context = np.array(user).tobytes()
        decided = Decided("front", context, name, 0, 1.0, 0, number, teaches=weight)
        halves.append((decided, {name: features[name]}))
        if number > 10:
            for late, payoff in ((halves[-8], None), (halves[-5], 1.0)):
                _learn(made, plain, *late, payoff)
    made.learn()
    x = np.array(visitor(random))
    estimates, widths = plain.bounds(x, list(ARTICLES))
    np.testing.assert_allclose(made.policy.estimates(x, ARTICLES), estimates, rtol=1e-9)
    np.testing.assert_allclose(made.policy.widths(x, ARTICLES), widths, rtol=1e-9)
    assert len(made.articles["rain"].earlier) == 2


def _learn(
    made: Pool, plain: StackedRidge, decided: Decided, then: dict[str, Any], payoff: float | None
) -> None:
    """Half a trial, by both: with the features of then, and as often as it counts."""
    now, plain.features = plain.features, plain.features | then
    x = np.frombuffer(decided.user) * np.sqrt(decided.teaches)
    if payoff is None:
        made.show(decided)
        plain.shown(x, decided.article)
    else:
        made.pay(decided, Paid(decided.model_version + 10_000, payoff))
        plain.paid(x, decided.article, np.sqrt(decided.teaches) * payoff)
    plain.features = now


def test_the_fold_is_the_same_in_batches_of_any_size(tmp_path: Path) -> None:
    settings = config(tmp_path, traffic={"uniform_teaches": True})

    async def work(service: Service) -> str:
        await add_articles(service)
        await visits(service, 60, 1)
        await service.remove_article("front", "article-2")
        await visits(service, 60, 2)
        return service.state.fingerprint()

    fingerprint = run(settings, work)
    made = Made(settings)
    records = list(made.folder.journal.read())
    made.crash()
    start = Starts(tmp_path / "start").policy
    for size in (1, 7, len(records)):
        state = State(settings.context)
        for first in range(0, len(records), size):
            state.apply(records[first : first + size], start)
        assert state.fingerprint() == fingerprint, size
