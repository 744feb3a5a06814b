"""The journal as logs: exported, and archived once it is old."""

from __future__ import annotations

import asyncio
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from tests.serving.making import D, Made, add_articles, config, run, visits
from tests.serving.state.recovery.test_recovery import USER, fingerprint

import topstory as ts
from topstory.serving.api.messages import ArticleRequest, DecideRequest, Decision, FeedbackRequest
from topstory.serving.client import decision_number
from topstory.serving.journal.clock import SECOND, Clock
from topstory.serving.journal.records import Decided, Placed, Record, decode, encode
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.upkeep.journal_export import (
    NothingToExport,
    _decisions,
    _Event,
    export,
)
from topstory.serving.upkeep.keeper import DAY, Keeper


async def a_little_history(service: Service) -> None:
    await add_articles(service, 3)
    await visits(service, 60, seed=1)
    await service.remove_article("front", "article-1")
    await visits(service, 60, seed=2)
    await asyncio.gather(
        *(service.decide(DecideRequest(user=USER, exclude=("article-0",))) for _ in range(9))
    )


def test_the_exported_journal_is_the_log_of_what_happened(tmp_path: Path) -> None:
    settings = config(tmp_path / "data")
    run(settings, a_little_history)
    made = Made(settings)
    decided = [
        (entry, paid.record.payoff if paid else 0.0)
        for entry, paid in made.folder.journal.history(10**9)
        if isinstance(entry.record, Decided)
    ]
    exported = export(made.folder.journal, tmp_path / "all", "front")
    uniform = export(made.folder.journal, tmp_path / "uniform", "front", "uniform")
    with pytest.raises(NothingToExport, match="may still get feedback"):
        export(made.folder.journal, tmp_path / "none", "front", now=0)
    made.crash()
    log = ts.EventLog.read(tmp_path / "all")
    assert exported.events == len(log) == 129
    sizes = {len(event.pool) for event in log}
    assert sizes == {1, 2, 3}
    for event, (entry, payoff) in zip(log, decided, strict=True):
        record = entry.record
        assert isinstance(record, Decided)
        assert event.shown == record.article
        assert event.payoff == payoff
        assert event.propensity == pytest.approx(record.propensity, rel=1e-6)
        assert event.user.tobytes() == record.user
    random = ts.EventLog.read(tmp_path / "uniform")
    assert uniform.events == len(random) == sum(e.record.bucket == 2 for e, _ in decided)  # type: ignore[union-attr]  # decisions only
    assert random.recorded_propensity is None
    replayed = ts.replay(ts.policy("ucb"), random)
    assert replayed.events == len(random)
    assert random.dimension == D


@pytest.mark.parametrize("visitors", ["hashed", "given"])
def test_the_export_has_what_the_journal_knows_of_each_decision(
    tmp_path: Path, visitors: str
) -> None:
    settings = config(
        tmp_path / "data",
        journal={"visitors": visitors},
        policy={"name": "egreedy-disjoint"},
    )
    names = ["ann", "bob", "evelyn", None]

    async def work(service: Service) -> list[Decision]:
        await add_articles(service, 4)
        made = [
            await service.decide(
                DecideRequest(user=USER, visitor=names[i % 4], request=f"r{i}" if i % 2 else None)
            )
            for i in range(40)
        ]
        export(service.journal, tmp_path / "log", "front")
        return made

    made = run(settings, work)
    log = ts.EventLog.read(tmp_path / "log")
    assert log.decisions is not None
    rows = log.decisions.to_pylist()
    assert [row["decision"] for row in rows] == [decision_number(each.decision) for each in made]
    assert [row["bucket"] for row in rows] == [each.bucket for each in made]
    assert [row["model_version"] for row in rows] == [each.model_version for each in made]
    assert [row["mixture_propensity"] for row in rows] == [each.propensity for each in made]
    assert [row["request"] for row in rows] == [f"r{i}" if i % 2 else None for i in range(40)]
    assert {row["slot"] for row in rows} == {0}
    found = [row["visitor"] for row in rows]
    if visitors == "given":
        assert found == names * 10
    else:  # the same for the same visitor, and none of the ids
        assert len(set(found)) == 4
        assert found == found[:4] * 10
        assert not {"ann", "bob", "evelyn"} & set(found)
        journal = (tmp_path / "data" / "journal.sqlite").read_bytes()
        assert b"evelyn" not in journal
    for row in rows:  # before any payoff all four articles tie in every bucket
        assert row["bucket_propensity"] == pytest.approx(0.25)
        assert row["mixture_propensity"] == pytest.approx(0.25)


def test_a_journal_of_an_earlier_version_exports_null_for_what_it_did_not_record(
    tmp_path: Path,
) -> None:
    class Decided02(Record, frozen=True, tag="Decided"):
        """As it was before buckets' own propensities were recorded."""

        pool: str
        user: bytes
        article: str
        bucket: int
        propensity: float
        expires: int
        model_version: int
        teaches: bool
        ranking: tuple[str, ...] = ()
        exclude: tuple[str, ...] = ()
        request: str | None = None
        slots: int = 1
        draw: int | None = None
        key: str = ""
        visitor: bytes = b""

    old = Decided02("front", bytes(8), "a", 2, 0.25, 9, 4, True, key="web", visitor=b"\1" * 8)
    read = decode(encode(old))  # type: ignore[arg-type]  # a record of an earlier version
    assert isinstance(read, Decided)
    assert (read.bucket_propensity, read.visitor_id, read.slot) == (0.0, "", 0)
    assert read.visitor == old.visitor
    (row,) = pa.table(_decisions([_Event(3, 0, read, 0.0, "a", ("a",))])).to_pylist()
    assert row["bucket_propensity"] is None
    assert (row["mixture_propensity"], row["bucket"], row["slot"]) == (0.25, "uniform", 0)
    assert row["visitor"] == old.visitor.hex()
    # A version before this one reads what this one writes, and ignores what it does not know.
    new = encode(Decided("front", b"", "a", 0, 0.5, 9, 4, True, bucket_propensity=1.0, slot=2))
    assert msgspec.msgpack.decode(new, type=Decided02).propensity == 0.5


def test_a_model_taught_from_the_export_is_the_services_own(tmp_path: Path) -> None:
    """Contexts and payoffs are not rounded: what differs is the order of additions."""
    settings = config(
        tmp_path / "data",
        policy={"name": "linucb-disjoint"},
        traffic={"learning": 1, "deployment": 0, "uniform": 0},
    )

    async def work(service: Service) -> dict[str, np.ndarray[Any, Any]]:
        await add_articles(service, 3)
        random = np.random.default_rng(5)
        for each in await visits(service, 200, paid=0.0):
            payoff = float(random.random())
            await service.feedback(FeedbackRequest(decision=each.decision, payoff=payoff))
        export(service.journal, tmp_path / "log", "front")
        return dict(service.state.pools["front"].policy.model.learned())

    learned = run(settings, work)
    policy, log = ts.policy("linucb-disjoint"), ts.EventLog.read(tmp_path / "log")
    for article, features in log.articles.items():
        policy.add_article(article, features)
    for event in log:
        policy.learn(event.user, event.shown, event.payoff)
    for name, array in policy.model.learned().items():
        np.testing.assert_allclose(array, learned[name], rtol=1e-12, atol=1e-12)
    assert len(ts.replay(policy, log).by_article)


def test_old_decisions_move_to_log_folders_and_the_state_stays(tmp_path: Path) -> None:
    settings = config(tmp_path, journal={"archive_days": 1}, window_seconds=60)

    async def work(service: Service) -> str:
        keeper = Keeper(service, Snapshots(tmp_path / "snapshots"))
        await a_little_history(service)
        await keeper.snapshot()
        await visits(service, 5, seed=3)
        await keeper.snapshot()
        assert await keeper.archive() == 0  # too young
        service.ledger.clock = Clock(service.clock.now() + 2 * DAY)
        assert await keeper.archive() > 129
        await visits(service, 5, seed=4)
        return service.state.fingerprint()

    before = run(settings, work)
    assert fingerprint(settings) == before
    names = sorted(path.name for path in (tmp_path / "archive" / "front").iterdir())
    assert [name.split("-")[1] for name in names] == ["all", "uniform"]
    assert len(ts.EventLog.read(tmp_path / "archive" / "front" / names[0])) == 129
    shutil.rmtree(tmp_path / "snapshots")
    with pytest.raises(ValueError, match="restore the folder `snapshots` from a backup"):
        Made(settings)


async def paid_late(service: Service, later: int) -> None:
    """Decisions before both snapshots, their payoffs between them; then the archive's turn."""
    keeper = Keeper(service, Snapshots(Path(service.config.data) / "snapshots"))
    await add_articles(service, 2)
    made = [await service.decide(DecideRequest(user=USER)) for _ in range(4)]
    await keeper.snapshot()
    for each in made[1:]:
        await service.feedback(FeedbackRequest(decision=each.decision, payoff=1.0))
    await keeper.snapshot()
    await visits(service, later)
    service.ledger.clock = Clock(service.clock.now() + 2 * DAY)
    assert await keeper.archive() == 1  # the first decision alone: nobody paid for it
    assert await keeper.archive() == 0


@pytest.mark.parametrize("later", [0, 1])
def test_payoffs_that_the_older_snapshot_does_not_have_are_not_archived(
    tmp_path: Path, later: int
) -> None:
    """Else they are lost if the newer one is damaged; or no snapshot goes with the journal."""
    settings = config(tmp_path, journal={"archive_days": 1}, window_seconds=60)

    async def work(service: Service) -> str:
        await paid_late(service, later)
        return service.state.fingerprint()

    before = run(settings, work)
    newest, _ = Snapshots(tmp_path / "snapshots").numbers()
    assert fingerprint(settings) == before
    (tmp_path / "snapshots" / f"{newest:012d}" / "state.json").unlink()
    assert fingerprint(settings) == before


async def twice_saved(service: Service, keeper: Keeper) -> None:
    """Enough snapshots for all decisions so far to be archived."""
    for number in range(2):
        await keeper.snapshot()
        await service.put_article(
            "front", "article-0", ArticleRequest(features=(1, 0, 1), title=f"{number}")
        )


def archived(folder: Path) -> list[datetime | None]:
    """When the archived events were, folder after folder."""
    logs = sorted(folder.glob("archive/front/*-all"))
    return [event.timestamp for log in logs for event in ts.EventLog.read(log)]


def test_a_decision_that_is_still_open_is_not_archived_though_the_window_was_shortened(
    tmp_path: Path,
) -> None:
    days = {"archive_days": 1}

    async def before(service: Service) -> str:
        await service.put_article("front", "article-0", ArticleRequest(features=(1, 0, 1)))
        return (await service.decide(DecideRequest(user=USER))).decision

    decision = run(config(tmp_path, journal=days, window_seconds=3 * 86_400), before)

    async def after(service: Service) -> None:
        keeper = Keeper(service, Snapshots(tmp_path / "snapshots"))
        await twice_saved(service, keeper)
        service.ledger.clock = Clock(service.clock.now() + 2 * DAY)
        assert await keeper.archive() == 0
        await service.feedback(FeedbackRequest(decision=decision, payoff=1.0))
        await twice_saved(service, keeper)
        service.ledger.clock = Clock(service.clock.now() + 2 * DAY)
        assert await keeper.archive() == 2

    run(config(tmp_path, journal=days, window_seconds=60), after)


def test_an_archive_that_was_interrupted_holds_no_event_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(service: Service) -> None:
        keeper = Keeper(service, Snapshots(tmp_path / "snapshots"))
        wall = [service.clock.now()]
        service.ledger.clock = Clock(0, wall=lambda: wall[0], steady=lambda: wall[0])
        await service.put_article("front", "article-0", ArticleRequest(features=(1, 0, 1)))
        for half in range(2):
            for _ in range(3):
                wall[0] += SECOND
                await service.decide(DecideRequest(user=USER))
            await twice_saved(service, keeper)
            wall[0] += 2 * DAY
            if not half:
                with monkeypatch.context() as broken:
                    broken.setattr(service.journal, "prune", lambda _: 1 / 0)
                    with pytest.raises(ZeroDivisionError):
                        await keeper.archive()
        assert [await keeper.archive() for _ in range(3)] == [3, 3, 0]

    run(config(tmp_path, journal={"archive_days": 1}, window_seconds=60), work)
    times = archived(tmp_path)
    assert len(times) == len(set(times)) == 6


def test_an_article_that_came_back_with_other_features_is_another_one_in_the_log(
    tmp_path: Path,
) -> None:
    settings = config(tmp_path / "data")

    async def work(service: Service) -> None:
        for features in ((1.0, 0, 1), (0.0, 1, 1), (1.0, 0, 1)):
            await service.put_article("front", "a", ArticleRequest(features=features))
            await service.decide(DecideRequest(user=USER, exclude=("b",)))
            await service.remove_article("front", "a")

    run(settings, work)
    made = Made(settings)
    (second,) = [
        entry.number
        for entry, _ in made.folder.journal.history(10**9)
        if isinstance(entry.record, Placed) and entry.record.article.features == (0, 1, 1)
    ]
    export(made.folder.journal, tmp_path / "log", "front")
    made.crash()
    log = ts.EventLog.read(tmp_path / "log")
    other = f"a@{second}"
    assert [event.shown for event in log] == ["a", other, "a"]
    assert [event.pool for event in log] == [("a",), (other,), ("a",)]
    rows = {name: None if row is None else row.tolist() for name, row in log.articles.items()}
    assert rows == {"a": [1, 0, 1], other: [0, 1, 1]}
