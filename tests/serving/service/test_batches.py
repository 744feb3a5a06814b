"""Many at once is the same as one by one, to the bit; and no visitor waits for a compiler."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.making import D, M, Made, add_articles, config, run, visitor, visits

import topstory as ts
from topstory.kernels import choice, mixture, model
from topstory.policies.registry import REGISTRY
from topstory.serving.api.errors import Refused
from topstory.serving.api.messages import ArticleRequest, DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.schema import TrafficConfig
from topstory.serving.http.views import article_views
from topstory.serving.journal.records import ArticleFacts, Decided
from topstory.serving.service.replies import Awaited
from topstory.serving.service.service import Service
from topstory.serving.state.decider import Decider
from topstory.serving.state.pool import Pool
from topstory.serving.state.recovery import Starts
from topstory.serving.state.state import State
from topstory.serving.state.traffic import Traffic

ARTICLES = ("rain", "sun", "wind")
KERNELS: tuple[Any, ...] = (
    *(mixture.decide_all, mixture.decide, mixture.rank, model.learn_halves, choice.score),
)


def policy(name: str) -> ts.Policy:
    offset = {"rain": np.linspace(-0.1, 0.1, D)} if name.endswith("-warm") else None
    return ts.policy(name) if offset is None else ts.policy(name, offset=offset)


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
                payoff = float(random.normal())
                together.pay(decided, 99, payoff)
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


def test_the_fold_is_the_same_in_batches_of_any_size(tmp_path: Path) -> None:
    told = config(tmp_path, traffic={"uniform_teaches": True})

    async def work(service: Service) -> str:
        await add_articles(service)
        await visits(service, 60, 1)
        await service.remove_article("front", "article-2")
        await visits(service, 60, 2)
        return service.state.fingerprint()

    fingerprint = run(told, work)
    made = Made(told)
    records = list(made.folder.journal.read())
    made.crash()
    start = Starts(tmp_path / "start").policy
    for size in (1, 7, len(records)):
        state = State(told.context)
        for first in range(0, len(records), size):
            state.apply(records[first : first + size], start)
        assert state.fingerprint() == fingerprint, size


def test_all_who_ask_in_one_turn_are_decided_for_by_one_kernel_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    plain = Decider.decide_all

    def counted(decider: Decider, users: Any, *told: Any) -> Any:
        sizes.append(len(users))
        return plain(decider, users, *told)

    async def work(service: Service) -> None:
        await add_articles(service)
        await visits(service, 50, paid=0.0)

    monkeypatch.setattr(Decider, "decide_all", counted)
    run(config(tmp_path), work)
    assert sizes == [1, 50]  # the first to warm up


def test_a_mistake_while_deciding_together_leaves_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*told: Any) -> Any:
        raise ArithmeticError("a mistake")

    async def work(service: Service) -> None:
        await add_articles(service)
        monkeypatch.setattr(Decider, "decide_all", broken)
        asked = [service.decide(DecideRequest(user=(0.2, 0.3, 0.5, 1.0))) for _ in range(3)]
        for failure in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(failure, Refused)
            assert failure.status == 500
        monkeypatch.undo()
        await visits(service, 3)

    run(config(tmp_path), work)
    assert "a mistake" in caplog.text


def test_an_editor_waits_for_the_compiler_and_no_visitor_does(tmp_path: Path) -> None:
    # Contexts and features of lengths that no other test has: nothing is compiled for them yet.
    user = (0.1, 0.2, 0.3, 0.4, 1.0)

    async def work(service: Service) -> None:
        before = [len(kernel.signatures) for kernel in KERNELS]
        for article in ARTICLES:
            await service.put_article("front", article, ArticleRequest(features=(0.5, 1.0)))
        warm = [len(kernel.signatures) for kernel in KERNELS]
        for slots, exclude in ((1, ()), (2, ()), (1, ("rain",))):
            made = await service.decide(DecideRequest(user=user, slots=slots, exclude=exclude))
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))
        await article_views(service, "front")
        assert [len(kernel.signatures) for kernel in KERNELS] == warm
        # The ranking knows scores alone; lengths are compiled into all the others.
        more = [after > was for after, was in zip(warm, before, strict=True)]
        assert (more[:2], more[3:]) == ([True, True], [True, True])

    run(config(tmp_path, context=5), work)


class Broken:
    """A reply that nobody can be given."""

    def grant(self, answer: object) -> None:
        raise RuntimeError("gone")

    def refuse(self, refused: Refused) -> None:
        raise RuntimeError("gone")


@pytest.mark.parametrize("decisions", ["durable", "relaxed"])
def test_one_who_cannot_be_told_keeps_no_other_from_his_answer(
    tmp_path: Path, decisions: str
) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 2)
        asked, other = DecideRequest(user=(0.2, 0.3, 0.5, 1.0)), Awaited[Decision]()
        service.ask(asked, Broken())
        service.ask(asked, other)
        made = await asyncio.wait_for(other.answer, 10)
        assert made.article in {"article-0", "article-1"}

    run(config(tmp_path, journal={"decisions": decisions}), work)
