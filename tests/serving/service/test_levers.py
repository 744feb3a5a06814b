"""Levers: a pin holds, limits are kept to the show, and propensities stay exact."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.making import add_articles, config, folded, refused, run, stopped, visits

import topstory as ts
from topstory.kernels.buckets import UNIFORM
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import (
    ArticleRequest,
    DecideRequest,
    Decision,
    LeversRequest,
    Pin,
)
from topstory.serving.http.lever_views import lever_views, levers_view
from topstory.serving.journal.clock import SECOND, as_datetime
from topstory.serving.journal.records import ArticleFacts, Decided, Levers
from topstory.serving.journal.sqlite import SqliteJournal
from topstory.serving.service import recent_estimates
from topstory.serving.service.admission import UNIT_SECONDS
from topstory.serving.service.service import Service
from topstory.serving.state.state import State
from topstory.serving.upkeep.journal_export import export
from topstory.serving.workers.shared_memory.layout import lay_out, pool_of

USER = (0.2, 0.3, 0.5, 1.0)
TRAFFIC = {"learning": 0.3, "deployment": 0.5, "uniform": 0.2}


async def shown(service: Service, count: int, **asked: Any) -> list[Decision]:
    """Visitors all at once, all alike."""
    return list(
        await asyncio.gather(
            *(service.decide(DecideRequest(user=USER, **asked)) for _ in range(count))
        )
    )


def decisions(data: Path) -> list[Decided]:
    journal = SqliteJournal(data / "journal.sqlite")
    try:
        return [e.record for e, _ in journal.history(10**9) if isinstance(e.record, Decided)]
    finally:
        journal.close()


def test_a_pin_holds_until_its_time_but_in_the_uniform_bucket(tmp_path: Path) -> None:
    settings = config(tmp_path, traffic=TRAFFIC)

    async def work(service: Service) -> None:
        await add_articles(service)
        await visits(service, 200)
        wall = stopped(service)
        pin = Pin(until=as_datetime(wall[0] + SECOND))
        await service.put_levers("front", "article-3", LeversRequest(pin=pin))
        for decision in await shown(service, 300, slots=3):
            if decision.bucket == "uniform":
                expected = 0.8 + 0.2 / 5 if decision.article == "article-3" else 0.2 / 5
                assert decision.propensity == pytest.approx(expected)
            else:
                assert decision.article == decision.ranking[0] == "article-3"
                assert decision.propensity == pytest.approx(0.8 + 0.2 / 5)
        assert len({d.article for d in await shown(service, 300) if d.bucket == "uniform"}) == 5
        wall[0] += SECOND
        after = await shown(service, 300)
        assert {each.article for each in after if each.bucket == "deployment"} != {"article-3"}

    run(settings, work)
    pinned = [each for each in decisions(tmp_path) if each.pinned]
    assert {each.article for each in pinned} == {"article-3"}
    assert {each.bucket_propensity for each in pinned} == {1.0}
    assert all(each.bucket != UNIFORM for each in pinned)


def test_a_pin_of_another_slot_holds_there(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service)
        await service.put_levers("front", "article-4", LeversRequest(pin=Pin(slot=3)))
        for decision in await shown(service, 60, slots=4):
            assert len(set(decision.ranking)) == 4
            if decision.bucket != "uniform" and decision.article != "article-4":
                assert decision.ranking[2] == "article-4"
        with pytest.raises(ApiError) as caught:
            await service.put_levers("front", "article-0", LeversRequest(pin=Pin(slot=3)))
        assert refused(caught) == (409, "slot_taken")
        past = Pin(until=datetime(2020, 1, 1, tzinfo=UTC))
        with pytest.raises(ApiError) as caught:
            await service.put_levers("front", "article-0", LeversRequest(pin=past))
        assert refused(caught) == (422, "bad_levers")
        with pytest.raises(ApiError) as caught:
            await service.put_levers("front", "nothing", LeversRequest(boost=2.0))
        assert refused(caught) == (404, "unknown_article")

    run(config(tmp_path), work)


@pytest.mark.parametrize(
    ("policy", "numbers"),
    [("linucb-hybrid", {"alpha": 0.3}), ("egreedy-disjoint", {"epsilon": 0.3}), ("random", {})],
)
@pytest.mark.parametrize("lever", ["boost", "share", "pin"])
def test_propensities_stay_exact(
    tmp_path: Path, policy: str, numbers: dict[str, float], lever: str
) -> None:
    """Each article is shown 1/p times as often as p says: once a visit that it was there for.

    Over 3,000 visits, within 4.5 standard errors: by chance it fails in 1 of 3,000 such suites.
    """
    settings = config(tmp_path, traffic=TRAFFIC, policy={"name": policy, **numbers})
    said = {
        "boost": LeversRequest(boost=3.0),
        "share": LeversRequest(boost=5.0, max_share=0.4),
        "pin": LeversRequest(pin=Pin(), max_share=0.5),
    }[lever]

    async def work(service: Service) -> None:
        await add_articles(service, 4)
        await visits(service, 300)
        await service.put_levers("front", "article-2", said)
        before = service.state.number
        for _ in range(30):
            await shown(service, 100)
        assert before < service.state.number

    run(settings, work)
    made = decisions(tmp_path)[300:]
    for article in (f"article-{number}" for number in range(4)):
        ratios = np.array(
            [
                (each.article == article) / each.propensity - (article not in each.withheld)
                for each in made
            ]
        )
        assert abs(ratios.mean()) < 4.5 * ratios.std() / len(made) ** 0.5 + 1e-9, article
        for bucket in range(3):
            own = [each for each in made if each.bucket == bucket]
            ratios = np.array(
                [
                    (each.article == article) / each.bucket_propensity
                    for each in own
                    if each.article == article or article not in each.withheld
                ]
            )
            if bucket == UNIFORM:
                assert abs(ratios.mean() - 1) < 4.5 * ratios.std() / len(ratios) ** 0.5
    if lever != "boost":
        share = np.mean([each.article == "article-2" for each in made])
        limit = said.max_share
        assert share < limit + 4.5 * (limit * (1 - limit) / len(made)) ** 0.5


def test_no_more_shows_than_the_limit_whatever_comes_at_once(tmp_path: Path) -> None:
    settings = config(tmp_path, traffic=TRAFFIC)

    async def work(service: Service) -> None:
        await add_articles(service)
        limited = LeversRequest(pin=Pin(), max_shows=17)
        await service.put_levers("front", "article-1", limited)
        made = [each for _ in range(3) for each in await shown(service, 40)]
        assert Counter(each.article for each in made)["article-1"] == 17
        assert len(made) == 120
        view = await levers_view(service, "front", "article-1", Levers(pin=1, shows=17))
        assert view.exhausted
        assert not view.pinned

    run(settings, work)
    made = decisions(tmp_path)
    last = max(place for place, each in enumerate(made) if each.article == "article-1")
    assert made[-1].withheld == ("article-1",)
    assert not any(each.withheld for each in made[:last])
    state = folded(settings)
    assert state.pools["front"].articles["article-1"].exhausted
    assert "article-1" not in state.pools["front"].listing(state.at).ids

    async def again(service: Service) -> None:
        assert all(each.article != "article-1" for each in await shown(service, 50))
        await service.put_levers("front", "article-1", LeversRequest(pin=Pin(), max_shows=19))
        made = await shown(service, 50)
        assert Counter(each.article for each in made)["article-1"] == 2

    run(settings, again)


def test_levers_survive_an_edit_of_the_article_and_are_undone_by_none(tmp_path: Path) -> None:
    settings = config(tmp_path)

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        await service.put_levers("front", "article-0", LeversRequest(boost=2.5), edit="one")
        said = ArticleRequest(features=(0.5, 0.5, 1.0), title="Another title")
        await service.put_article("front", "article-0", said)
        (view,) = await lever_views(service, "front")
        assert (view.article, view.boost) == ("article-0", 2.5)
        await service.put_levers("front", "article-0", LeversRequest())
        assert await lever_views(service, "front") == []
        # A copy of the first edit that comes late changes nothing.
        await service.put_levers("front", "article-0", LeversRequest(boost=2.5), edit="one")
        assert await lever_views(service, "front") == []

    run(settings, work)
    assert folded(settings).pools["front"].articles["article-0"].facts.title == "Another title"


def test_what_a_lever_costs_is_what_the_best_would_have_paid_more(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 3)
        none = await levers_view(service, "front", "article-0", Levers(pin=1))
        assert none.cost is None  # nobody came yet
        await visits(service, 400)
        policy = service.decider("front").pool.policy
        last = service.recent.newest(50, "front")
        users = np.array([np.frombuffer(each.decided.user, "<f8") for each in last])
        ids = [f"article-{number}" for number in range(3)]
        expected = policy.estimates_all(users, ids)
        lost = 1000 * (expected.max(axis=1) - expected[:, 1]).mean()
        pinned = await levers_view(service, "front", "article-1", Levers(pin=1))
        assert pinned.cost == pytest.approx(lost)
        none = await levers_view(service, "front", "article-1", None)
        assert none.cost == pytest.approx(0)
        second = await levers_view(service, "front", "article-1", Levers(pin=2))
        assert second.cost == pytest.approx(0)  # the story is as it was

    run(config(tmp_path), work)


def test_an_exported_event_could_show_what_no_lever_withheld(tmp_path: Path) -> None:
    settings = config(tmp_path / "data", traffic=TRAFFIC)

    async def work(service: Service) -> None:
        await add_articles(service, 4)
        await service.put_levers("front", "article-2", LeversRequest(max_share=0.5, boost=9.0))
        await shown(service, 200)

    run(settings, work)
    journal = SqliteJournal(tmp_path / "data" / "journal.sqlite")
    export(journal, tmp_path / "log", "front", "uniform")
    export(journal, tmp_path / "all", "front")
    journal.close()
    log = ts.EventLog.read(tmp_path / "log")
    assert {len(event.pool) for event in log} == {3, 4}
    for event in log:
        assert event.propensity == pytest.approx(1 / len(event.pool))
    records = decisions(tmp_path / "data")
    for event, each in zip(ts.EventLog.read(tmp_path / "all"), records, strict=True):
        assert ("article-2" in event.pool) == (each.withheld == ())


def test_a_worker_s_pool_has_the_same_levers(tmp_path: Path) -> None:
    async def work(service: Service) -> State:
        await add_articles(service, 4)
        await shown(service, 30)
        for number, said in enumerate(
            (
                LeversRequest(max_shows=0),
                LeversRequest(max_shows=10**6, boost=2.0),
                LeversRequest(pin=Pin(slot=2)),
            )
        ):
            await service.put_levers("front", f"article-{number}", said)
        return service.state

    state = run(config(tmp_path), work)
    pools = {"front": state.pools["front"]}
    layout, _, _ = lay_out(1, state.dimension, pools, {"front": 1}, state.at)
    front = layout.pools[0]
    arrays = {each.field: np.zeros(each.shape) for each in front.arrays}
    theirs, ours = pool_of(front, state.dimension, arrays), state.pools["front"]
    plan, own = theirs.listing(state.at).plan, ours.listing(state.at).plan
    assert plan is not None
    assert own is not None
    assert theirs.listing(state.at).ids == ours.listing(state.at).ids
    assert (plan.pins, plan.factors, plan.exhausted) == (own.pins, own.factors, own.exhausted)


def test_articles_of_earlier_journals_have_no_levers() -> None:
    import msgspec

    old = msgspec.msgpack.encode(["rain", None, "Rain", "", None, None, "", ""])
    assert msgspec.msgpack.decode(old, type=ArticleFacts).levers is None


def test_an_article_that_is_removed_while_levers_are_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(service: Service) -> list[str]:
        await add_articles(service, 3)
        for number in range(3):
            await service.put_levers("front", f"article-{number}", LeversRequest(boost=1.5))

        async def removed(pool: str, article: str) -> None:
            if article == "article-1":
                await service.remove_article(pool, article)

        monkeypatch.setattr(service.estimates, "of", removed)
        return [each.article for each in await lever_views(service, "front")]

    assert run(config(tmp_path), work) == ["article-0", "article-2"]


def test_the_costs_of_all_levers_are_estimated_once_and_a_few_visitors_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 400 articles and contexts of 200 numbers, the list of levers took 80 seconds."""
    sizes: list[int] = []

    async def work(service: Service) -> None:
        await add_articles(service, 6)
        for number in range(6):
            await service.put_levers("front", f"article-{number}", LeversRequest(boost=1.5))
        await visits(service, 30)
        policy, estimates_all = ts.Policy, ts.Policy.estimates_all

        def counted(self: ts.Policy, users: Any, pool: Any) -> Any:
            sizes.append(len(users))
            return estimates_all(self, users, pool)

        monkeypatch.setattr(policy, "estimates_all", counted)
        monkeypatch.setattr(recent_estimates, "TURN_SECONDS", 10 * 6 * 4**2 * UNIT_SECONDS)
        views = await asyncio.gather(*(lever_views(service, "front") for _ in range(3)))
        assert sizes == [10, 10, 10]
        assert views[0] == views[1] == views[2]
        assert all(each.cost is not None for each in views[0])
        await service.put_article("front", "new", ArticleRequest(features=(0.5, 0.5, 1.0)))
        assert (await levers_view(service, "front", "new", Levers(pin=1))).cost is not None
        assert sizes[3:] == [8, 8, 8, 6]  # it was not among those that were estimated

    run(config(tmp_path), work)
