"""What a key can do to the model at worst, by the true click chances of a simulated world."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.serving.making import Made, config, refused, run

import topstory as ts
from topstory.events.simulator.live import Visit
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.inherited import CONTEXT_NORM, inherited

# Clicks and tastes stronger than a front page's, so that few visits teach something.
WORLD = ts.TodayModule(seed=0, users=5_000, ctr=0.3, preference=2.0)
HOURS = 1
HONEST, ATTACK = 5_000, 500
UNBOUNDED = {"context_norm": 1e6, "payoffs": (-1000.0, 1000.0)}


def settings(folder: Path, limits: dict[str, Any]) -> Any:
    traffic = {"learning": 1.0, "deployment": 0.0, "uniform": 0.0}
    policy = {"name": "linucb-hybrid", "alpha": 0.3}
    return config(folder, context=6, policy=policy, traffic=traffic, limits=limits)


def visits(count: int, seed: int) -> list[Visit]:
    """Visitors of the first hour, whose pool does not change."""
    found = list(WORLD.visits(count, days=HOURS / 24, seed=seed))
    return [each for each in found if each.pool == found[0].pool]


async def teach(service: Service, honest: list[Visit]) -> None:
    features = WORLD.random_log(1, days=HOURS / 24).articles
    for article in honest[0].pool:
        known = tuple(np.asarray(features[article]).tolist())
        await service.put_article("front", article, ArticleRequest(features=known))

    async def visit(each: Visit) -> None:
        made = await service.decide(DecideRequest(user=tuple(each.user.tolist())))
        if each.payoff(made.article):
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))

    for begin in range(0, len(honest), 20):
        await asyncio.gather(*map(visit, honest[begin : begin + 20]))


def deployed(service: Service, judged: list[Visit]) -> float:
    """The mean true chance of a click on what the deployment bucket would show."""
    policy = service.state.pools["front"].policy
    chances = []
    for each in judged:
        best = int(np.argmax(policy.estimates(each.user, list(each.pool))))
        chances.append(each.chances[best])
    return float(np.mean(chances))


def contexts(length: float) -> list[tuple[float, ...]]:
    """Contexts of this length along a feature and the constant, as the strongest attack has."""
    found = []
    for number in range(ATTACK):
        user = np.zeros(6)
        user[number % 5] = user[5] = length / np.sqrt(2)
        found.append(tuple(user.tolist()))
    return found


async def attack_by_deciding(service: Service, length: float) -> int:
    """How many of the contexts were accepted."""
    asked = [DecideRequest(user=user) for user in contexts(length)]
    results = await asyncio.gather(*map(service.decide, asked), return_exceptions=True)
    for each in results:
        if isinstance(each, BaseException):
            assert isinstance(each, ApiError), each
            assert (each.status, each.reason) == (422, "bad_context")
            assert "limits.context_norm" in each.message
    return sum(not isinstance(each, BaseException) for each in results)


async def attack_by_paying(service: Service, judged: list[Visit], payoff: float) -> int:
    accepted = 0
    for each in judged[:20]:
        made = await service.decide(DecideRequest(user=tuple(each.user.tolist())))
        try:
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=payoff))
            accepted += 1
        except ApiError as error:
            if error.reason != "bad_payoff" or "limits.payoffs" not in error.message:
                raise
    return accepted


def worth(folder: Path, limits: dict[str, Any], attack: Any) -> tuple[float, float, int]:
    """What the deployment bucket earns before and after an attack, and how much was accepted."""
    honest, judged = visits(HONEST, seed=1), visits(1_000, seed=2)

    async def work(service: Service) -> tuple[float, float, int]:
        await teach(service, honest)
        before = deployed(service, judged)
        accepted = await attack(service, judged)
        return before, deployed(service, judged), accepted

    return run(settings(folder, limits), work)


def test_one_array_of_long_contexts_ruins_the_model_only_without_bounds(tmp_path: Path) -> None:
    def by_length(length: float) -> Any:
        return lambda service, _: attack_by_deciding(service, length)

    before, after, accepted = worth(tmp_path / "a", UNBOUNDED, by_length(1000 * np.sqrt(2)))
    assert accepted == ATTACK
    assert after < 0.6 * before  # what the bounds are against
    before, after, accepted = worth(tmp_path / "b", {}, by_length(1000 * np.sqrt(2)))
    assert (accepted, after) == (0, before)
    # The longest that are accepted do what 500 visitors who do not click do among 5,000 others.
    before, after, accepted = worth(tmp_path / "c", {}, by_length(CONTEXT_NORM - 1e-9))
    assert accepted == ATTACK
    assert after > 0.9 * before


def test_twenty_payoffs_ruin_the_model_only_without_bounds(tmp_path: Path) -> None:
    def by_payoff(payoff: float) -> Any:
        return lambda service, judged: attack_by_paying(service, judged, payoff)

    before, after, accepted = worth(tmp_path / "a", UNBOUNDED, by_payoff(1000.0))
    assert accepted == 20
    assert after < 0.6 * before
    before, after, accepted = worth(tmp_path / "b", {}, by_payoff(1000.0))
    assert accepted == 0
    assert after > 0.95 * before
    before, after, accepted = worth(tmp_path / "c", {}, by_payoff(1.0))
    assert accepted == 20
    assert after > 0.9 * before


def test_a_visitor_teaches_so_many_times_an_hour(tmp_path: Path) -> None:
    user = (0.2, 0.2, 0.2, 0.2, 0.2, 1.0)

    async def work(service: Service) -> tuple[int, dict[str, int]]:
        await service.put_article("front", "only", ArticleRequest(features=(0.5, 1.0)))
        asked = DecideRequest(user=user, visitor="a bot")
        for _ in range(30):
            await service.decide(asked)
        await service.decide(DecideRequest(user=user, visitor="ann"))
        return service.state.pools["front"].policy.decisions, service.sequencer.influence.take()

    decisions, bounded = run(settings(tmp_path, {"visitor_decisions": 10}), work)
    assert decisions == 11
    assert bounded["visitor"] == 20


def test_a_folder_begun_without_bounds_goes_on_without_them(tmp_path: Path) -> None:
    """As one of version 0.1: its visitors keep their buckets, and its payoffs their range."""
    old = msgspec.structs.replace(settings(tmp_path, {}), bucket_secret=None)
    made = Made(old)
    made.crash()
    # A folder whose configuration says nothing of bounds.
    made = Made(old)
    held = made.service.state
    for name in ("bucket_secret", "unbounded"):
        held.config.pop(name)
    config = inherited(old, held)
    assert config.bucket_secret == ""
    assert config.limits.payoffs == (-1000.0, 1000.0)
    assert config.limits.context_norm is not None
    assert config.limits.context_norm > 1000
    made.crash()


def test_buckets_depend_on_a_secret_and_stay_across_restarts(tmp_path: Path) -> None:
    base = config(tmp_path / "a", context=2, bucket_secret=None)

    def buckets(settings: Any) -> list[int]:
        made = Made(settings)
        try:
            traffic = made.service.deciders["front"].traffic
            return [traffic.bucket(f"visitor-{i}") for i in range(200)]
        finally:
            made.crash()

    first = buckets(base)
    assert buckets(base) == first
    assert buckets(config(tmp_path / "b", context=2, bucket_secret=None)) != first  # its own secret
    secret = config(tmp_path / "c", context=2, bucket_secret="0" * 32)
    assert buckets(secret) == buckets(config(tmp_path / "d", context=2, bucket_secret="0" * 32))


def test_out_of_range_inputs_are_counted(tmp_path: Path) -> None:
    async def work(service: Service) -> dict[str, int]:
        await service.put_article("front", "only", ArticleRequest(features=(0.5, 1.0)))
        with pytest.raises(ApiError) as caught:
            await service.decide(DecideRequest(user=(9.0, 0.0, 0.0, 0.0, 0.0, 1.0)))
        assert refused(caught) == (422, "bad_context")
        made = await service.decide(DecideRequest(user=(1.0, 0.0, 0.0, 0.0, 0.0, 1.0)))
        for payoff in (-0.1, 1.1):
            with pytest.raises(ApiError):
                await service.feedback(FeedbackRequest(decision=made.decision, payoff=payoff))
        return service.front.take_outliers()

    assert run(settings(tmp_path, {}), work) == {"context": 1, "payoff": 2}
