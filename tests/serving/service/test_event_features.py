"""Features that change with the event, live: as a log of the same events has them, to the bit."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.features.test_event_features import builder, dated_log
from tests.serving.making import Made, config, folded, run

import topstory as ts
from topstory.events import EventLog
from topstory.policies.log_learner import learn_log
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.config.loading import BadConfig
from topstory.serving.config.schema import Config
from topstory.serving.journal.sqlite import SqliteJournal
from topstory.serving.service.service import Service
from topstory.serving.state.state_copy import StateCopy
from topstory.serving.upkeep.journal_export import export
from topstory.serving.upkeep.offline_promotion import promote_stopped

LIVE = ("hour_of_day", "age_hours", "seen_before")
IN_F = ("hour_of_day", "f:age_hours", "f:seen_before")  # z = x ⊗ f depends on the event
PEOPLE = [{"gender": "f", "likes": ["golf"]}, {"gender": "m", "likes": ["opera", "tea"]}]


@cache
def model(*event: str) -> ts.FeatureBuilder:
    x = [name for name in event if not name.startswith("f:")]
    f = [name.removeprefix("f:") for name in event if name.startswith("f:")]
    return builder(event=x, event_in_f=f, published="published").fit(dated_log())


def served(folder: Path, *event: str, **overrides: Any) -> Config:
    """A service with such a feature model."""
    fitted = model(*event)
    path = folder / "model.safetensors"
    if not path.exists():
        fitted.save(path)
    given = {
        "features": str(path),
        "context": len(fitted.user(PEOPLE[0])) + len(fitted.event_.columns),
        "policy": {"name": "linucb-hybrid" if event == IN_F else "linucb-disjoint"},
        "traffic": {"learning": 0.5, "deployment": 0.25, "uniform": 0.25},
    }
    return config(folder / "data", **(given | overrides))


async def visits(service: Service, count: int, seed: int = 0) -> None:
    """Some visitors come, several times each; some click."""
    random = np.random.default_rng(seed)
    for i in range(count):
        who = int(random.integers(3))
        request = DecideRequest(
            user=PEOPLE[who % 2],
            visitor=f"visitor {who}" if who else None,
            request=f"{seed} {i}",
            slots=1 + i % 2,
            exclude=("a1",) if i % 5 == 0 else (),
        )
        made = await service.decide(request)
        assert (await service.decide(request)).decision == made.decision  # asked again
        if random.random() < 0.4:
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))


async def articles(service: Service) -> None:
    for i in range(4):
        profile = {"tags": ["stage"] if i % 2 else ["sport"]}
        if i < 3:
            profile["published"] = f"2026-0{i + 1}-01T12:00:00Z"  # type: ignore[assignment]
        await service.put_article("front", f"a{i}", ArticleRequest(profile=profile))


def exported(settings: Config, out: Path, earlier: int = 0) -> EventLog:
    journal = SqliteJournal(Path(settings.data) / "journal.sqlite")
    try:
        assert export(journal, out, "front").earlier == earlier
    finally:
        journal.close()
    return EventLog.read(out)


@pytest.mark.parametrize("event", [LIVE, IN_F])
def test_an_exported_journal_has_the_numbers_that_a_log_has(
    event: tuple[str, ...], tmp_path: Path
) -> None:
    settings, fitted = served(tmp_path, *event), model(*event)

    async def work(service: Service) -> None:
        await articles(service)
        await visits(service, 60)

    run(settings, work)
    log = exported(settings, tmp_path / "log")
    assert log.varying is not None
    assert (len(log), log.event_numbers, log.varying.width) == (60, 4, 2)
    assert log.event_features == (2 if event == IN_F else 0)
    facts = folded(settings).pools["front"].articles
    # The same events as a raw log: what a site would have fitted its features on.
    assert log.timestamps is not None
    assert log.decisions is not None
    published = [
        np.datetime64(facts[name].facts.published, "us").item() for name in log.article_ids
    ]
    who = log.decisions.column("visitor").to_pylist()
    contexts = np.asarray(log.users)
    people = [fitted.user(person).astype(np.float32)[:-1] for person in PEOPLE]
    number = [
        next(i for i, x in enumerate(people) if (x == row[: len(x)]).all()) for row in contexts
    ]
    rows = sorted(set(zip(who, number, strict=True)), key=str)
    raw = EventLog.from_arrays(
        None,
        log.pools,
        log.pool,
        log.shown,
        log.payoff,
        articles=dict.fromkeys(log.article_ids),
        timestamps=log.timestamps,
        visitor=[rows.index(each) for each in zip(who, number, strict=True)],
        profiles=[PEOPLE[person] for _, person in rows],
        visitor_ids=[name for name, _ in rows],
        article_profiles={"tags": [["stage"]] * len(published), "published": published},
    )
    applied = fitted.apply(raw)
    for t in range(len(log)):
        assert (log.contexts(t) == applied.contexts(t)).all()
    assert float(np.asarray(log.users)[:, -2].max()) > 0  # somebody saw something again


@pytest.mark.parametrize("event", [LIVE, IN_F])
def test_a_crash_changes_no_bit(event: tuple[str, ...], tmp_path: Path) -> None:
    """With a snapshot in between, and without: what visitors saw is known again, too."""
    settings = served(tmp_path, *event)
    made = Made(settings)

    async def first() -> None:
        await articles(made.service)
        await visits(made.service, 30)
        await made.service.commits.drain()

    asyncio.run(first())
    made.folder.snapshots.write(StateCopy.of(made.folder.state))
    made.crash()

    async def more(service: Service) -> str:
        await visits(service, 20, seed=1)
        await service.commits.drain()
        assert service.state.pools["front"].seen is not None
        return service.state.fingerprint()

    ended = run(settings, more)
    assert folded(settings).fingerprint() == ended
    assert run(settings, _fingerprint) == ended


async def _fingerprint(service: Service) -> str:
    return service.state.fingerprint()


@pytest.mark.parametrize("event", [LIVE, IN_F])
def test_the_model_learns_the_context_of_the_article_that_was_shown(
    event: tuple[str, ...], tmp_path: Path
) -> None:
    settings = served(tmp_path, *event, traffic={"learning": 1.0, "deployment": 0, "uniform": 0})

    async def work(service: Service) -> ts.Policy:
        await articles(service)
        await visits(service, 40)
        await service.commits.drain()
        return service.state.pools["front"].policy

    live = run(settings, work)
    log = exported(settings, tmp_path / "log")
    again = ts.policy(settings.policy.used_name)
    learn_log(again, log)
    for t in range(0, len(log), 7):
        x, pool = log.contexts(t), log.pools[int(log.pool[t])]
        np.testing.assert_allclose(live.scores(x, pool), again.scores(x, pool), rtol=1e-9)


def test_a_replayed_journal_makes_the_live_decisions_again_to_the_bit(tmp_path: Path) -> None:
    """Every visitor is in the learning bucket: what it chose is what the policy's best was."""
    traffic = {"learning": 1.0, "deployment": 0, "uniform": 0}
    settings = served(tmp_path, *IN_F, traffic=traffic)

    async def work(service: Service) -> ts.Policy:
        await articles(service)
        random = np.random.default_rng(5)
        for i in range(60):
            asked = DecideRequest(user=PEOPLE[i % 2], visitor=f"visitor {i % 3}")
            made = await service.decide(asked)
            payoff = float(random.random() < 0.4)
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=payoff))
        await service.commits.drain()
        return service.state.pools["front"].policy

    live = run(settings, work)
    log = exported(settings, tmp_path / "log")
    again = ts.policy(settings.policy.used_name, seed=live.seed)
    for article, features in log.articles.items():
        again.add_article(article, features)
    again.model.use_event_features(log.event_features)
    for t in range(len(log)):
        x, pool, shown = log.contexts(t), log.pools[int(log.pool[t])], str(log.shown[t])
        scores = again.scores(x, pool)
        assert scores[pool.index(shown)] == pytest.approx(scores.max(), rel=1e-11)
        again.learn(log.context(t), shown, float(log.payoff[t]))
    names = [name for name in live.model.roster.ids if name]
    for name in names:
        ours, theirs = live.model.roster.slot(name), again.model.roster.slot(name)
        for field in ("A", "b", "A_inverse", "products", "event"):
            mine, other = (each.model.arrays()[field] for each in (live, again))
            np.testing.assert_array_equal(mine[ours], other[theirs])
    np.testing.assert_array_equal(live.model.arrays()["beta"], again.model.arrays()["beta"])


def test_a_policy_and_a_feature_model_with_the_same_features_of_the_event_are_promoted(
    tmp_path: Path,
) -> None:
    """On a stopped service; others would make something else of the journal's contexts."""
    settings, old = served(tmp_path, *IN_F), model(*IN_F)

    async def work(service: Service) -> None:
        await articles(service)
        await visits(service, 10)

    run(settings, work)
    assert exported(settings, tmp_path / "log").feature_model == old.identity
    new = builder(
        **{"method": "clusters", "clusters": 6, "article_clusters": 2, "published": "published"},
        **{"event": ["hour_of_day"], "event_in_f": ["age_hours", "seen_before"]},
    ).fit(dated_log())
    assert new.identity != old.identity
    assert len(new.user({})) == len(old.user({}))
    path = tmp_path / "new.safetensors"
    new.save(path)
    policy = ts.policy("linucb-hybrid", alpha=0.7)
    log = new.apply(dated_log())
    learn_log(policy, log)
    for i in range(4):
        profile = {"tags": ["stage"] if i % 2 else ["sport"]}
        policy.edit_article(f"a{i}", new.article(profile))
    content = _file(policy, tmp_path)
    (report,) = promote_stopped(settings, ("front",), content, features=path)
    assert report.feature_model == new.identity

    async def later(service: Service) -> None:
        await visits(service, 10, seed=1)
        assert service.state.pools["front"].policy.explorer.parameters()["alpha"] == 0.7

    settings = msgspec.structs.replace(settings, features=str(path))
    run(settings, later)
    log = exported(
        settings, tmp_path / "log", earlier=10
    )  # numbers of one model only, and its names
    assert (len(log), log.feature_model) == (10, new.identity)
    assert log.articles is not None
    for i in range(4):
        row = new.article({"tags": ["stage"] if i % 2 else ["sport"]})
        np.testing.assert_array_equal(log.articles[f"a{i}"], row)
    other = tmp_path / "other.safetensors"
    builder(event=["hour_of_day", "age_hours", "seen_before"]).fit(dated_log()).save(other)
    with pytest.raises(ValueError, match="other features of the event"):
        promote_stopped(settings, ("front",), content, features=other)


def _file(policy: ts.Policy, folder: Path) -> bytes:
    policy.save(folder / "policy.safetensors")
    return (folder / "policy.safetensors").read_bytes()


def test_hours_alone_need_no_context_for_each_article(tmp_path: Path) -> None:
    settings = served(tmp_path, "hour_of_day", "weekday")

    async def work(service: Service) -> None:
        await articles(service)
        await visits(service, 10)

    run(settings, work)
    log = exported(settings, tmp_path / "log")
    assert log.varying is None
    assert log.event_numbers == 5
    assert log.timestamps is not None
    event = model("hour_of_day", "weekday").event_
    for t in range(len(log)):
        at = int(log.timestamps[t].astype("M8[us]").astype(int))
        assert (log.context(t)[-6:-1] == event.of_event(at)).all()


def test_what_a_service_cannot_do_is_refused(tmp_path: Path) -> None:
    for overrides, message in (
        ({"workers": 2}, "seen_before needs one process.*workers = 1"),
        ({"policy": {"name": "ucb-seg"}}, "largest number of a context.*without segments"),
        ({"context": 4}, "4 numbers are too few"),
    ):
        with pytest.raises(BadConfig, match=message):
            Made(served(tmp_path, *LIVE, **overrides))

    async def work(service: Service) -> None:
        wrong = ArticleRequest(profile={"tags": ["stage"], "published": "yesterday"})
        with pytest.raises(ApiError, match="'published' must be a date"):
            await service.put_article("front", "a", wrong)
        with pytest.raises(ApiError, match=r"a context has . numbers here, got 2"):
            await service.decide(DecideRequest(user=(0.5, 1.0)))

    settings = served(tmp_path, *LIVE)
    run(settings, work)
    same = {"name": "linucb-disjoint"}
    without = config(Path(settings.data), context=settings.context, policy=same)
    with pytest.raises(BadConfig, match="set `features`"):
        Made(without)


def test_an_article_without_a_date_came_out_when_it_was_placed(tmp_path: Path) -> None:
    settings = served(tmp_path, *LIVE)

    async def work(service: Service) -> list[int | None]:
        await articles(service)
        pool = service.decider("front").pool
        first = pool.articles["a3"].facts.published
        await service.put_article("front", "a3", ArticleRequest(profile={"tags": ["ball"]}))
        return [first, pool.articles["a3"].facts.published, pool.articles["a0"].facts.published]

    first, edited, dated = run(settings, work)
    assert first == edited
    assert first is not None
    assert first > 1_700_000_000_000_000
    assert dated == 1_767_268_800_000_000
