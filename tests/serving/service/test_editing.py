"""Editors: what they say of articles holds at once, from its time until its time."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.serving.making import (
    Made,
    add_articles,
    config,
    folded,
    refused,
    run,
    stopped,
    visits,
)

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.http import views
from topstory.serving.http.views import MAX_VIEWS_PER_TURN, article_views
from topstory.serving.journal.clock import as_datetime
from topstory.serving.journal.records import ArticleFacts, Placed
from topstory.serving.service.service import Service
from topstory.serving.state import pool
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.upkeep.keeper import Keeper

USER = (0.2, 0.3, 0.5, 1.0)


def test_articles_are_shown_from_their_time_until_their_time(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        wall = stopped(service)
        now = wall[0]
        span = {"soon": (now + 40_000, None), "going": (None, now + 40_000), "past": (None, 1)}
        for name, (begins, ends) in span.items():
            said = ArticleRequest(
                begins=None if begins is None else as_datetime(begins),
                ends=None if ends is None else as_datetime(ends),
            )
            await service.put_article("front", name, said)
        assert (await service.decide(DecideRequest(user=USER, slots=3))).ranking == ("going",)
        wall[0] += 39_999
        assert (await service.decide(DecideRequest(user=USER, slots=3))).ranking == ("going",)
        wall[0] += 1
        assert (await service.decide(DecideRequest(user=USER, slots=3))).ranking == ("soon",)
        await service.remove_article("front", "soon")
        with pytest.raises(ApiError) as caught:
            await service.decide(DecideRequest(user=USER))
        assert refused(caught) == (409, "no_article")

    run(config(tmp_path), work)


def test_a_decision_sees_the_edit_that_is_on_its_way(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 2)
        edit = asyncio.create_task(service.remove_article("front", "article-0"))
        await asyncio.sleep(0)
        made = await service.decide(DecideRequest(user=USER, slots=2))
        assert made.ranking == ("article-1",)
        await edit

    run(config(tmp_path), work)


def test_a_visitor_waits_for_one_edit_however_many_wait(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 20)
        edits = [
            asyncio.create_task(service.remove_article("front", f"article-{number}"))
            for number in range(10)
        ]
        await asyncio.sleep(0)
        made = await service.decide(DecideRequest(user=USER, slots=20))
        assert len(made.ranking) == 19
        await asyncio.gather(*edits)
        assert len((await service.decide(DecideRequest(user=USER, slots=20))).ranking) == 10

    run(config(tmp_path), work)


def test_visitors_are_answered_while_many_articles_are_listed(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        pool = service.state.pools["front"]
        for number in range(300):
            pool.place(ArticleFacts(f"article-{number}", (0.5, 1.0)), number)
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                if turns == 2:
                    pool.remove("article-299")  # an editor is let in too
                await asyncio.sleep(0)

        visiting = asyncio.create_task(others())
        listed = [view async for some in article_views(service, "front") for view in some]
        visiting.cancel()
        assert [each.id for each in listed] == [f"article-{number}" for number in range(299)]
        assert turns >= 300 // MAX_VIEWS_PER_TURN

    run(config(tmp_path), work)


def test_an_article_of_many_numbers_has_a_turn_of_its_own(tmp_path: Path) -> None:
    """With 200 numbers a view is of 199 segments, with 40,000 products for each."""

    async def work(service: Service) -> None:
        pool = service.state.pools["front"]
        for number in range(4):
            pool.place(ArticleFacts(f"article-{number}"), number)

        async def listed() -> None:
            async for _ in article_views(service, "front"):
                pass

        listing = asyncio.create_task(listed())
        turns = 0
        while not listing.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 4

    run(config(tmp_path, context=200, policy={"name": "linucb-disjoint"}), work)


def test_however_many_read_at_once_they_have_one_turn_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view can take as long as a decision: those of a hundred readers would stop all others."""
    turn, read = 0, []
    made = views._views

    def noted(*arguments: Any) -> Any:
        read.append(turn)
        return made(*arguments)

    monkeypatch.setattr(views, "_views", noted)

    async def work(service: Service) -> None:
        await add_articles(service, 3)

        async def others() -> None:
            nonlocal turn
            while True:
                turn += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        await asyncio.gather(*(views.article_view(service, "front", "article-1") for _ in range(9)))
        beside.cancel()

    run(config(tmp_path), work)
    assert len(set(read)) == len(read) == 9


def test_a_payoff_for_an_article_that_was_removed_is_taken_and_teaches_nothing(
    tmp_path: Path,
) -> None:
    settings = config(tmp_path, traffic={"learning": 1, "deployment": 0, "uniform": 0})

    async def work(service: Service) -> str:
        await service.put_article("front", "one", ArticleRequest(features=(1.0,)))
        made = await service.decide(DecideRequest(user=USER))
        late = await service.decide(DecideRequest(user=USER))
        await service.remove_article("front", "one")
        await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))
        await service.put_article("front", "one", ArticleRequest(features=(1.0,)))
        learned = service.state.pools["front"].policy.model.learned()["b"].tolist()
        await service.feedback(FeedbackRequest(decision=late.decision, payoff=1.0))
        assert service.state.pools["front"].policy.model.learned()["b"].tolist() == learned
        return service.state.fingerprint()

    assert run(settings, work) == folded(settings).fingerprint()


def test_a_pool_that_was_emptied_still_says_how_many_features_it_takes(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 1)
        await service.remove_article("front", "article-0")
        with pytest.raises(ApiError) as caught:
            await service.put_article("front", "odd", ArticleRequest(features=(1.0,)))
        assert refused(caught) == (409, "features_conflict")

    run(config(tmp_path), work)


def test_an_article_whose_features_change_is_edited_and_recovered_so(tmp_path: Path) -> None:
    settings = config(tmp_path)

    async def work(service: Service) -> str:
        await add_articles(service)
        await visits(service, 60)
        policy = service.state.pools["front"].policy
        before, pool = policy.copy(), list(service.state.pools["front"].articles)
        await service.put_article("front", pool[0], ArticleRequest(features=(0.9, 0.2, 1.0)))
        assert service.state.pools["front"].articles[pool[0]].facts.features == (0.9, 0.2, 1.0)
        before.edit_article(pool[0], (0.9, 0.2, 1.0))
        assert policy.scores(USER, pool).tolist() == before.scores(USER, pool).tolist()
        await visits(service, 40, seed=1)
        return service.state.fingerprint()

    assert run(settings, work) == folded(settings).fingerprint()


def test_payoffs_after_an_edit_are_of_the_article_as_it_was_shown(tmp_path: Path) -> None:
    """Also with a snapshot between the decision, the edit and its payoff."""
    settings = config(tmp_path, traffic={"learning": 1, "deployment": 0, "uniform": 0})
    edited = (0.9, 0.2, 1.0)

    async def work(service: Service) -> str:
        await add_articles(service, 2)
        old = service.state.pools["front"].articles["article-0"].facts.features
        policy = service.state.pools["front"].policy.copy()
        decided = [await service.decide(DecideRequest(user=USER)) for _ in range(4)]
        for each in decided:
            policy.shown(USER, each.article)
        await service.put_article("front", "article-0", ArticleRequest(features=edited))
        policy.edit_article("article-0", edited)
        await Keeper(service, Snapshots(tmp_path / "snapshots")).snapshot()
        for each in decided:
            await service.feedback(FeedbackRequest(decision=each.decision, payoff=1.0))
            then = old if each.article == "article-0" else None
            policy.paid(USER, each.article, 1.0, features=then)
        assert {"article-0"} <= {each.article for each in decided}
        live, names = service.state.pools["front"].policy, ["article-0", "article-1"]
        wanted = pytest.approx(policy.scores(USER, names), rel=1e-12)
        assert live.scores(USER, names) == wanted
        return service.state.fingerprint()

    fingerprint = run(settings, work)
    assert fingerprint == folded(settings).fingerprint()
    made = Made(settings)  # from the snapshot
    assert fingerprint == made.service.state.fingerprint()
    made.crash()


def test_features_that_do_not_fit_are_refused_before_they_are_journalled(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 1)
        number = service.state.number
        with pytest.raises(ApiError) as caught:
            await service.put_article("front", "odd", ArticleRequest(features=(1.0,)))
        assert refused(caught) == (409, "features_conflict")
        with pytest.raises(ApiError) as caught:
            await service.put_article("front", "big", ArticleRequest(features=(1e9, 0.0, 1.0)))
        assert refused(caught) == (422, "bad_article")
        east, west = timezone(timedelta(hours=14)), timezone(-timedelta(hours=14))
        for out in (
            ArticleRequest(begins=datetime(1, 1, 1, tzinfo=east)),
            ArticleRequest(ends=datetime(9999, 12, 31, 23, tzinfo=west)),
        ):
            with pytest.raises(ApiError, match="in UTC") as caught:
                await service.put_article("front", "never", out)
            assert refused(caught) == (422, "bad_article")
        assert service.state.number == number

    run(config(tmp_path), work)


def test_an_edit_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    """A copy of a PUT that was delayed on its way, until after the DELETE: also after restarts."""
    said = ArticleRequest(title="first")

    async def edited(service: Service) -> None:
        await service.put_article("front", "a", said, "put-1")
        await service.put_article("front", "a", said, "put-1")
        await service.remove_article("front", "a", "remove-1")

    async def late(service: Service) -> None:
        for _ in range(2):
            with pytest.raises(ApiError) as caught:
                await service.put_article("front", "a", said, "put-1")
            assert refused(caught) == (409, "edit_superseded")
        await service.remove_article("front", "a", "remove-1")
        assert not service.state.pools["front"].articles
        for other in (
            service.put_article("front", "b", said, "put-1"),
            service.remove_article("front", "a", "put-1"),
        ):
            with pytest.raises(ApiError) as caught:
                await other
            assert refused(caught) == (409, "edit_conflict")

    async def again(service: Service) -> None:
        await late(service)
        await service.put_article("front", "a", said, "put-2")
        await service.remove_article("front", "a", "remove-1")  # late, too
        assert list(service.state.pools["front"].articles) == ["a"]
        await Keeper(service, Snapshots(tmp_path / "snapshots")).snapshot()

    async def from_snapshot(service: Service) -> None:
        await service.put_article("front", "a", ArticleRequest(title="other"), "put-2")
        assert service.state.pools["front"].articles["a"].facts.title == "first"
        with pytest.raises(ApiError) as caught:
            await service.remove_article("front", "a", "put-1")
        assert refused(caught) == (409, "edit_conflict")

    settings = config(tmp_path)
    run(settings, edited)
    run(settings, late)
    run(settings, again)
    run(settings, from_snapshot)


def test_copies_of_an_edit_that_come_together_are_one(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        said = ArticleRequest()
        edits = [
            service.put_article("front", "a", said, "put"),
            service.put_article("front", "a", said, "put"),
            service.remove_article("front", "a", "remove"),
            service.put_article("front", "a", said, "put"),
        ]
        await asyncio.gather(*edits, return_exceptions=True)
        placed = [each.record for each, _ in service.journal.read() if type(each.record) is Placed]
        assert len(placed) == 1

    run(config(tmp_path), work)


def test_the_ids_of_edits_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MAX_EDITS", 3)

    async def work(service: Service) -> None:
        for number in range(5):
            await service.put_article("front", "a", ArticleRequest(), f"put-{number}")
        assert list(service.state.pools["front"].edits) == ["put-2", "put-3", "put-4"]

    run(config(tmp_path), work)
