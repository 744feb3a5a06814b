"""Visits of one turn share a kernel call, and no visitor waits for a compiler."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.serving.making import add_articles, config, run, visits

from topstory.kernels import choice, mixture
from topstory.kernels.models import model
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest, DecideRequest, Decision, FeedbackRequest
from topstory.serving.http.views import article_views
from topstory.serving.service.replies import Awaited
from topstory.serving.service.service import Service
from topstory.serving.state.decider import Decider

ARTICLES = ("rain", "sun", "wind")
KERNELS: tuple[Any, ...] = (
    *(mixture.decide_all, mixture.decide, mixture.rank, model.learn_halves, choice.score),
)


def test_all_who_ask_in_one_turn_are_decided_for_by_one_kernel_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    plain = Decider.decide_all

    def counted(decider: Decider, users: Any, *arguments: Any) -> Any:
        sizes.append(len(users))
        return plain(decider, users, *arguments)

    async def work(service: Service) -> None:
        await add_articles(service)
        await visits(service, 50, paid=0.0)

    monkeypatch.setattr(Decider, "decide_all", counted)
    run(config(tmp_path), work)
    assert sizes == [1, 50]  # the first to warm up


def test_an_error_while_deciding_together_leaves_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: Any) -> Any:
        raise ArithmeticError("a mistake")

    async def work(service: Service) -> None:
        await add_articles(service)
        monkeypatch.setattr(Decider, "decide_all", broken)
        asked = [service.decide(DecideRequest(user=(0.2, 0.3, 0.5, 1.0))) for _ in range(3)]
        for failure in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(failure, ApiError)
            assert failure.status == 500
        monkeypatch.undo()
        await visits(service, 3)

    run(config(tmp_path), work)
    assert "a mistake" in caplog.text


def test_an_editor_waits_for_the_compiler_and_no_visitor_does(tmp_path: Path) -> None:
    # Contexts and features of lengths that no other test has: nothing is compiled for them yet.
    user = (*[0.1] * 6, 1.0)

    async def work(service: Service) -> None:
        before = [len(kernel.signatures) for kernel in KERNELS]
        for article in ARTICLES:
            await service.put_article(
                "front", article, ArticleRequest(features=(0.5, 0.2, 0.2, 0.1, 1.0))
            )
        warm = [len(kernel.signatures) for kernel in KERNELS]
        for slots, exclude in ((1, ()), (2, ()), (1, ("rain",))):
            made = await service.decide(DecideRequest(user=user, slots=slots, exclude=exclude))
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))
        assert [view async for some in article_views(service, "front") for view in some]
        assert [len(kernel.signatures) for kernel in KERNELS] == warm
        # The ranking knows scores alone; lengths are compiled into all the others.
        more = [after > was for after, was in zip(warm, before, strict=True)]
        assert (more[:2], more[3:]) == ([True, True], [True, True])

    run(config(tmp_path, context=7), work)


class Broken:
    """A reply that cannot be delivered."""

    def grant(self, answer: object) -> None:
        raise RuntimeError("gone")

    def refuse(self, refused: ApiError) -> None:
        raise RuntimeError("gone")


@pytest.mark.parametrize("decisions", ["durable", "relaxed"])
def test_a_reply_that_fails_keeps_no_other_from_its_answer(tmp_path: Path, decisions: str) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 2)
        asked, other = DecideRequest(user=(0.2, 0.3, 0.5, 1.0)), Awaited[Decision]()
        service.front.ask(asked, Broken())
        service.front.ask(asked, other)
        made = await asyncio.wait_for(other.answer, 10)
        assert made.article in {"article-0", "article-1"}

    run(config(tmp_path, journal={"decisions": decisions}), work)
