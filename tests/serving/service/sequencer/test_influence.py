"""One visitor, one key or one context teaches the policy only so much, whoever answers it."""

from __future__ import annotations

from pathlib import Path
from struct import pack
from typing import Any

import numpy as np
import pytest
from msgspec import msgpack
from tests.serving.making import D, add_articles, config, folded, run
from tests.serving.service.test_hostile_callers import attack_by_deciding, worth
from tests.serving.workers.test_learner import Worker

from topstory.serving.api.messages import ArticleRequest, DecideRequest, Decision, FeedbackRequest
from topstory.serving.journal.records import Decided, Paid, decode, encode
from topstory.serving.service.replies import Awaited
from topstory.serving.service.service import Service
from topstory.serving.state.pool import FOREVER
from topstory.serving.workers.wire import Proposed

USER = (0.2, 0.3, 0.5, 1.0)
LEARNING = {"learning": 1.0, "deployment": 0.0, "uniform": 0.0}


def keys(**caps: int) -> list[dict[str, Any]]:
    return [
        {"name": name, "sha256": f"{number:064x}", "taught_per_hour": cap}
        for number, (name, cap) in enumerate(caps.items())
    ]


async def decided(service: Service, key: str, user: tuple[float, ...] = USER) -> Decision:
    reply: Awaited[Decision] = Awaited()
    service.front.ask(DecideRequest(user=user), reply, key)
    return await reply.answer


def taught(service: Service) -> int:
    return service.state.pools["front"].policy.decisions


def test_a_visitor_has_one_cap_over_all_workers(tmp_path: Path) -> None:
    async def work(service: Service) -> tuple[int, dict[str, int]]:
        await add_articles(service, 1)
        worker, other = Worker(service), Worker(service)
        for number in range(6):
            one = Decided(
                *("front", pack("<4d", *USER), "article-0", 0, 0.5, FOREVER - 1, 0, True),
                visitor=b"a bot",
            )
            asked = worker if number % 2 else other
            edition = asked.publisher.editions["front"]
            await asked.send(Proposed(1, "front", edition, 0, FOREVER, [one, one]))
        return taught(service), service.sequencer.influence.take()

    settings = config(tmp_path, limits={"visitor_decisions": 7})
    assert run(settings, work) == (7, {"visitor": 5, "key": 0, "leverage": 0})


def test_a_key_teaches_so_many_times_an_hour(tmp_path: Path) -> None:
    async def work(service: Service) -> tuple[str, dict[str, int]]:
        await add_articles(service, 1)
        for _ in range(9):
            await decided(service, "browser")
            await decided(service, "server")
        assert taught(service) == 4 + 9
        shows = service.state.pools["front"].tally.shows
        assert sum(map(sum, shows)) == 18  # all are answered and counted
        return service.state.fingerprint(), service.sequencer.influence.take()

    settings = config(tmp_path, keys=keys(browser=4), traffic=LEARNING)
    before, bounded = run(settings, work)
    assert bounded == {"visitor": 0, "key": 5, "leverage": 0}
    assert folded(settings).fingerprint() == before


def test_payoffs_of_a_key_teach_so_many_times_an_hour(tmp_path: Path) -> None:
    def learned(service: Service) -> float:
        return float(service.state.pools["front"].policy.model.learned()["b"].sum())

    async def work(service: Service) -> str:
        await service.put_article("front", "only", ArticleRequest())
        made = [await decided(service, "server") for _ in range(6)]
        sums = []
        for each in made:
            reply: Awaited[Any] = Awaited()
            service.front.pay(FeedbackRequest(decision=each.decision, payoff=1.0), reply, "browser")
            assert not (await reply.answer).repeated
            sums.append(learned(service))
        assert sums[0] < sums[1] < sums[2] == sums[5]
        payoff = service.state.pools["front"].tally.payoff
        assert sum(map(sum, payoff)) == 6.0  # they are paid all the same
        return service.state.fingerprint()

    policy = {"name": "linucb-disjoint"}
    settings = config(tmp_path, keys=keys(browser=3), traffic=LEARNING, policy=policy)
    before = run(settings, work)
    assert folded(settings).fingerprint() == before


@pytest.mark.parametrize("ridge", [0.5, 1.0])
def test_no_decision_has_more_leverage_than_the_longest_context_taught(
    tmp_path: Path, ridge: float
) -> None:
    """By the definition: w·xᵀA⁻¹x, with A as it was before the decision."""
    norm = 1.5
    random = np.random.default_rng(5)
    users = [tuple((random.normal(size=D) * scale).tolist()) for scale in (0.1, 1, 3, 9) * 5]

    async def work(service: Service) -> str:
        await service.put_article("front", "only", ArticleRequest())
        model = service.state.pools["front"].policy.model
        before, x = ridge * np.eye(D), np.array(users)
        weights = np.minimum(1.0, norm**2 / (x**2).sum(axis=1))
        for user, weight in zip(x, weights, strict=True):
            made = await decided(service, "", tuple(user.tolist()))
            leverage = weight * user @ np.linalg.inv(before) @ user
            assert leverage <= norm**2 / ridge + 1e-9
            before = before + weight * np.outer(user, user)
            np.testing.assert_allclose(model.learned()["A"][0], before)
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))
        np.testing.assert_allclose(model.learned()["b"][0], weights @ x)
        assert service.sequencer.influence.take()["leverage"] == (weights < 1).sum() > 3
        return service.state.fingerprint()

    settings = config(
        tmp_path,
        policy={"name": "linucb-disjoint", "ridge": ridge},
        traffic=LEARNING,
        limits={"context_norm": 1e3, "taught_norm": norm},
    )
    before = run(settings, work)
    assert folded(settings).fingerprint() == before


def test_the_length_of_contexts_is_no_matter_to_a_model_that_counts(tmp_path: Path) -> None:
    async def work(service: Service) -> int:
        await add_articles(service, 1)
        for _ in range(5):
            await decided(service, "", (5.0, 5.0, 5.0, 1.0))
        return service.sequencer.influence.take()["leverage"]

    limits = {"context_norm": 1e3, "taught_norm": 1.0}
    assert run(config(tmp_path, policy={"name": "ucb"}, limits=limits), work) == 0


def test_long_contexts_are_harmless_where_they_teach_as_short_ones_do(tmp_path: Path) -> None:
    """The attack that raised bounds let through, and the bound on leverage that stops it."""
    raised = {"context_norm": 5.0}

    def attack(service: Service, _: object) -> Any:
        return attack_by_deciding(service, 4.9)

    before, after, accepted = worth(tmp_path / "a", raised, attack)
    assert accepted == 500
    assert after < 0.6 * before
    before, after, accepted = worth(tmp_path / "b", {**raised, "taught_norm": 1.5}, attack)
    assert accepted == 500
    assert after > 0.9 * before


def test_records_without_weights_fold_as_before() -> None:
    """`teaches` was true or false, and a payoff had no such field."""
    one = Decided("front", b"", "rain", 0, 1.0, 0, 0, True)
    fields = msgpack.decode(encode(one))
    assert fields[8] is True
    assert decode(msgpack.encode(["Paid", 7, 1.0, "web"])) == Paid(7, 1.0, "web")
    less = Decided("front", b"", "rain", 0, 1.0, 0, 0, 0.25)
    assert decode(encode(less)) == less
