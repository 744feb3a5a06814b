"""Work is bounded: what waits, what one request costs, and what is remembered."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from tests.serving.making import D, add_articles, config, refused, run, visitor

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import (
    ArticleRequest,
    DecideRequest,
    Decision,
    FeedbackRequest,
)
from topstory.serving.config.schema import KeyConfig
from topstory.serving.http.hot_routes import hot_routes
from topstory.serving.security.api_keys import Key, Keys
from topstory.serving.service import admission, frontend
from topstory.serving.service.proposals import PendingRequest
from topstory.serving.service.replies import Awaited
from topstory.serving.service.service import Service
from topstory.serving.service.waiting_requests import WaitingRequests

USER = (0.2, 0.3, 0.5, 1.0)


def test_ids_to_exclude_that_are_no_articles_are_not_kept(tmp_path: Path) -> None:
    """A thousand strings of 200 characters in each request filled memory and disk."""
    junk = tuple(f"{number}-{'x' * 190}" for number in range(990))

    async def work(service: Service) -> tuple[int, Decision, Decision]:
        await add_articles(service)
        asked = DecideRequest(user=USER, exclude=("article-1", *junk), request="one")
        made, again = await service.decide(asked), await service.decide(asked)
        await service.remove_article("front", "article-1")
        assert (await service.decide(asked)) == made  # still the same request
        with pytest.raises(ApiError) as caught:
            await service.decide(DecideRequest(user=USER, request="one"))
        assert refused(caught) == (409, "request_conflict")
        for _ in range(200):
            await service.decide(DecideRequest(user=USER, exclude=junk))
        return service.recent.bytes, made, again

    held, made, again = run(config(tmp_path), work)
    assert made == again
    assert made.article != "article-1"
    assert held < 300_000
    journal = sum(each.stat().st_size for each in tmp_path.glob("journal.sqlite*"))
    assert journal < 3_000_000  # most of it is the write-ahead log's own pages


def test_what_is_remembered_has_a_budget_of_bytes(tmp_path: Path) -> None:
    async def work(service: Service) -> tuple[int, int]:
        await add_articles(service, 50)
        for _ in range(400):
            await service.decide(DecideRequest(user=USER, slots=50))
        return service.recent.bytes, len(service.recent)

    held, count = run(config(tmp_path, limits={"remembered_bytes": 100_000}), work)
    assert held < 250_000
    assert count < 60


def test_an_article_that_the_model_cannot_afford_is_refused(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        with pytest.raises(ApiError, match=r"limits\.shared_features") as caught:
            await service.put_article("front", "big", ArticleRequest(features=(1.0,) * 10_000))
        assert refused(caught) == (422, "bad_article")
        with pytest.raises(ApiError, match=r"limits\.decision_seconds") as caught:
            await add_articles(service, 5)
        assert refused(caught) == (409, "too_many_articles")
        assert len(service.state.pools["front"].articles) == 4

    # 1 ns for each article and number of a D × D matrix.
    run(config(tmp_path, limits={"decision_seconds": 4.5e-9 * D**2}), work)


def test_more_work_than_fits_into_the_queue_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if each decision took 40 ms: 100 at once would take 4 seconds."""
    monkeypatch.setattr(admission, "UNIT_SECONDS", 0.04 / (5 * D**2))

    async def work(service: Service) -> list[Any]:
        await add_articles(service)
        await service.decide(DecideRequest(user=USER))
        random = np.random.default_rng(0)
        asked = [DecideRequest(user=visitor(random)) for _ in range(100)]
        turns = []

        async def others() -> None:
            while True:
                turns.append(perf_counter())
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        found = await asyncio.gather(*map(service.decide, asked), return_exceptions=True)
        beside.cancel()
        assert len(turns) > 10  # others had their turns in between
        assert (await service.decide(asked[0])).article  # the queue is empty again
        return list(found)

    found = run(config(tmp_path, limits={"queue_seconds": 0.5}), work)
    errors = [each for each in found if isinstance(each, ApiError)]
    assert {(each.status, each.reason) for each in errors} == {(503, "overloaded")}
    assert 80 <= len(errors) <= 95
    assert not any(isinstance(each, ApiError) for each in found[:5])  # first come, first served


def test_a_decision_that_waited_for_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the machine were busy with something else: a second passes before the turn comes."""
    passed = [0.0]
    monkeypatch.setattr(frontend, "perf_counter", lambda: perf_counter() + passed[0])

    async def work(service: Service) -> None:
        await add_articles(service)
        made = asyncio.gather(
            *(service.decide(DecideRequest(user=USER)) for _ in range(3)), return_exceptions=True
        )
        await asyncio.sleep(0)  # they are asked
        passed[0] += 1.0
        for each in await made:
            assert isinstance(each, ApiError)
            assert (each.status, each.reason) == (503, "overloaded")
        assert (await service.decide(DecideRequest(user=USER))).article

    run(config(tmp_path, limits={"queue_seconds": 0.5}), work)


@pytest.mark.parametrize("path", ["/v1/decide", "/v1/feedback"])
def test_an_array_is_refused_unread_while_too_much_waits(path: str, tmp_path: Path) -> None:
    """If there is little room left, each of its requests would be refused."""

    async def work(service: Service) -> None:
        await add_articles(service)
        front = service.front
        front.check_room()
        front.check_payments()
        made = await service.decide(DecideRequest(user=USER))
        paid = asyncio.create_task(service.feedback(FeedbackRequest(made.decision, 1.0)))
        await asyncio.sleep(0)  # one waits: there is room for one
        front.queue.waiting = front.queue.limit - 0.9 * front.queue.least
        keys = Keys([KeyConfig("web", "ab" * 32)], 1.0, 1)
        key = Key("web", bytes(32), frozenset({"decide", "feedback"}), 0)
        reply = Awaited[Any]()
        hot_routes(front, keys)[path].begin(key, b"[not even JSON", 0.0, reply)
        with pytest.raises(ApiError) as caught:
            await reply.answer
        assert refused(caught) == (503, "overloaded")
        assert not (await paid).repeated

    run(config(tmp_path, limits={"waiting": 1}), work)


def test_a_decision_is_waited_for_until_its_answer_is_sent() -> None:
    """Thousands may wait for one commit, and their answers take time as well."""
    queue, now = admission.QueueTime(limit=0.3), 0.0
    for turn in range(200):  # while a batch is committed decisions take 3 µs
        queue.proposing("front", 4_000)
        if turn % 5 == 4:
            queue.answered("front", 20_000)
        now += 0.112 if turn % 5 == 4 else 0.012
        queue.turned({"front": 10_000}, {"front": (4_000, 0.012)}, now)
    one = 0.16 / 20_000
    assert queue.each["front"] == pytest.approx(one, rel=0.3)
    assert queue.waiting == pytest.approx(10_000 * one, rel=0.3)
    queue.proposing("front", 4_000)
    queue.turned({"front": 10_000}, {"front": (4_000, 0.012)}, now + 60.0)  # a pause
    assert queue.each["front"] < 3 * one
    assert queue.waiting == 14_000 * queue.each["front"]
    queue.postponed("front", 4_000)  # they are in the line again
    queue.turned({"front": 14_000}, {}, now + 60.012)
    assert queue.waiting == 14_000 * queue.each["front"]


def test_who_waits_longest_comes_first() -> None:
    waiting = WaitingRequests()
    for number in range(1_000):
        request = DecideRequest(user=USER, request=f"{number}")
        pool = "front" if number % 2 else "sports"
        reply: Any = None
        waiting.add(PendingRequest(request, pool, USER, reply, "", float(number)))
    assert [each.asked for each in waiting.take_before(4.0)] == [0.0, 2.0, 1.0, 3.0]
    first = waiting.take("front", 3)
    assert [each.asked for each in first] == [5.0, 7.0, 9.0]
    waiting.add_first(first[1:])
    assert waiting.counts() == {"sports": 498, "front": 497}
    assert [each.asked for each in waiting.take("front", 500)][:3] == [7.0, 9.0, 11.0]
    assert waiting.counts() == {"sports": 498}
    waiting.take("sports", 498)
    assert not waiting


def test_spare_time_work_leaves_two_thirds_of_the_time_and_its_queue_ends() -> None:
    async def work() -> None:
        spare = admission.SpareTime()
        done: list[tuple[float, float]] = []

        async def piece() -> None:
            async with spare.piece():
                began = perf_counter()
                while perf_counter() < began + 0.002:
                    pass
                done.append((began, perf_counter()))

        asked = [asyncio.create_task(piece()) for _ in range(admission.MAX_PIECES + 3)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        refusals = [each for each in found if isinstance(each, ApiError)]
        assert [(each.status, each.reason) for each in refusals] == [(503, "overloaded")] * 3
        assert len(done) == admission.MAX_PIECES
        for (began, ended), (after, _) in pairwise(done):
            assert after >= ended + 2 * (ended - began) - 1e-3
        await piece()  # there is room again

    asyncio.run(work())
