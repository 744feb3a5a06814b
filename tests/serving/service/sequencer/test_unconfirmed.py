"""A commit that failed, and may have reached the disk all the same: it is unconfirmed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.serving.journal.test_unwritable import USER, recovered
from tests.serving.making import add_articles, config, folded, run

from topstory.serving.api.errors import ApiError, Unavailable
from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.journal import group_commit
from topstory.serving.journal.clock import SECOND, Clock
from topstory.serving.journal.journal import JournalError
from topstory.serving.service.service import Service


class FailingJournal:
    """A journal whose disk fails after a commit, before it can confirm it."""

    def __init__(self, service: Service) -> None:
        self.journal, self.broken = service.journal, False

    def append(self, entries: object) -> None:
        self.journal.append(entries)  # type: ignore[arg-type]  # passed on as it came
        if self.broken:
            raise JournalError("disk I/O error")

    def committed(self, entries: object) -> bool:
        if self.broken:
            raise JournalError("disk I/O error")
        return self.journal.committed(entries)  # type: ignore[arg-type]  # passed on as it came

    def probe(self) -> None:
        if self.broken:
            raise JournalError("disk I/O error")


def unconfirmed(service: Service) -> FailingJournal:
    """From now on commits are unconfirmed, until it is no longer `broken`."""
    failing = FailingJournal(service)
    service.commits._journal = failing  # type: ignore[assignment]  # fails on demand
    failing.broken = True
    return failing


async def paid_unconfirmed(service: Service) -> FeedbackRequest:
    """Feedback that reached the disk, unconfirmed; the disk works again."""
    await add_articles(service, 2)
    made = await service.decide(DecideRequest(user=USER))
    given = FeedbackRequest(decision=made.decision, payoff=1.0)
    failing = unconfirmed(service)
    with pytest.raises(Unavailable):
        await service.feedback(given)
    failing.broken = False
    return given


def test_an_unconfirmed_commit_is_resolved_without_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.01)
    settings = config(tmp_path)

    async def work(service: Service) -> str:
        given = await paid_unconfirmed(service)
        await recovered(service)
        assert (await service.feedback(given)).repeated
        return service.state.fingerprint()

    assert run(settings, work) == folded(settings).fingerprint()


def test_a_commit_that_failed_but_reached_the_disk_is_in_the_state(tmp_path: Path) -> None:
    settings = config(tmp_path)

    async def work(service: Service) -> str:
        given = await paid_unconfirmed(service)
        await service.decide(DecideRequest(user=USER))
        assert (await service.feedback(given)).repeated
        return service.state.fingerprint()

    assert run(settings, work) == folded(settings).fingerprint()


def test_a_request_whose_commit_is_unconfirmed_makes_no_second_decision(tmp_path: Path) -> None:
    settings = config(tmp_path, window_seconds=10)

    async def work(service: Service) -> str:
        await add_articles(service, 2)
        wall = [service.clock.now() + 20 * SECOND]  # up for longer than the window
        service.ledger.clock = Clock(service.clock.now(), wall=lambda: wall[0], steady=lambda: 0)
        failing = unconfirmed(service)
        asked = DecideRequest(user=USER, request="once")
        for _ in range(2):  # also while nobody knows
            with pytest.raises(Unavailable):
                await service.decide(asked)
            wall[0] += SECOND
        failing.broken = False
        await service.decide(DecideRequest(user=USER))
        first, again = await service.decide(asked), await service.decide(asked)
        assert first == again
        assert sum(map(sum, service.state.pools["front"].tally.shows)) == 2
        return service.state.fingerprint()

    assert run(settings, work) == folded(settings).fingerprint()


def test_a_payoff_whose_commit_was_unconfirmed_fails_no_other_commit(
    tmp_path: Path,
) -> None:
    settings = config(tmp_path)

    async def work(service: Service) -> str:
        await add_articles(service, 2)
        made = await service.decide(DecideRequest(user=USER))
        failing = unconfirmed(service)
        given = FeedbackRequest(decision=made.decision, payoff=1.0)
        copies = (service.feedback(given) for _ in range(2))  # one waits for the other
        outcomes = await asyncio.gather(*copies, return_exceptions=True)
        assert [type(each) for each in outcomes] == [Unavailable] * 2
        failing.broken = False
        retried, other = await asyncio.gather(
            service.feedback(given),
            service.decide(DecideRequest(user=USER)),
            return_exceptions=True,
        )
        assert isinstance(retried, Unavailable)  # it was not known yet
        assert not isinstance(other, BaseException)
        assert (await service.feedback(given)).repeated
        return service.state.fingerprint()

    assert run(settings, work) == folded(settings).fingerprint()


def test_an_unconfirmed_commit_is_resolved_by_asking_again(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        given = await paid_unconfirmed(service)
        with pytest.raises(Unavailable, match="unconfirmed"):
            await service.feedback(given)
        await service.commits.drain()  # nothing else comes
        assert (await service.feedback(given)).repeated

    run(config(tmp_path), work)


def test_nothing_is_decided_from_a_pool_whose_edit_is_unconfirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what was shown would not be in the pool, as the journal has it."""
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.01)
    settings = config(tmp_path)

    async def work(service: Service) -> None:
        await add_articles(service, 1)
        failing = unconfirmed(service)
        asked = DecideRequest(user=USER)
        with pytest.raises(Unavailable):
            await service.remove_article("front", "article-0")
        for one in (asked, DecideRequest(user=USER, slots=2)):
            with pytest.raises(Unavailable, match="unconfirmed"):
                await service.decide(one)
        failing.broken = False
        await recovered(service)  # tried by itself, now and then
        with pytest.raises(ApiError) as gone:
            await service.decide(asked)
        assert gone.value.reason == "no_article"

    run(settings, work)


def test_no_pool_is_edited_whose_last_edit_is_unconfirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the second could be at odds with the first, and no fold of the journal would do."""
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.01)
    settings = config(tmp_path)

    async def work(service: Service) -> str:
        failing = unconfirmed(service)
        with pytest.raises(Unavailable):
            await service.put_article("front", "a", ArticleRequest(features=(0.1, 0.2, 1.0)))
        other = ArticleRequest(features=(0.1, 1.0))
        for _ in range(2):
            with pytest.raises(Unavailable, match="unconfirmed"):
                await service.put_article("front", "b", other)
            with pytest.raises(Unavailable, match="unconfirmed"):
                await service.remove_article("front", "a")
        failing.broken = False
        await recovered(service)  # tried by itself, now and then
        with pytest.raises(ApiError) as refused:
            await service.put_article("front", "b", other)
        assert refused.value.reason == "features_conflict"
        await service.remove_article("front", "a")
        return service.state.fingerprint()

    assert run(settings, work) == folded(settings).fingerprint()
