"""Lookups in a remote journal delay nobody else, and nothing counts twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.serving.making import add_articles, config, folded, run

from topstory.serving.api.errors import ApiError, Unavailable
from topstory.serving.api.messages import DecideRequest, FeedbackRequest
from topstory.serving.config.schema import Config
from topstory.serving.journal import connect
from topstory.serving.journal.journal import Found, JournalError
from topstory.serving.journal.sqlite import SqliteJournal
from topstory.serving.service.service import Service

USER = (0.2, 0.3, 0.5, 1.0)


class RemoteJournal(SqliteJournal):
    """One whose answers are on their way until they are let through."""

    remote = True
    fails = False
    waited_for = False  # by the event loop itself
    arrived: threading.Semaphore  # lookups that have an answer
    gate: threading.Event

    def _lookup(self, look: Callable[[], Found | None]) -> Found | None:
        assert self.waited_for or threading.current_thread().name.startswith("lookups")
        if self.fails:
            raise JournalError("nobody answers")
        found = look()
        self.arrived.release()
        assert self.gate.wait(10)
        return found

    def decision(self, number: int) -> Found | None:
        return self._lookup(lambda: super(RemoteJournal, self).decision(number))

    def request(self, request: str, since: int) -> Found | None:
        return self._lookup(lambda: super(RemoteJournal, self).request(request, since))

    async def reached(self) -> None:
        """A lookup has its answer, which waits at the gate."""
        assert await asyncio.to_thread(self.arrived.acquire, timeout=10)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setattr(RemoteJournal, "arrived", threading.Semaphore(0), raising=False)
    monkeypatch.setattr(RemoteJournal, "gate", threading.Event(), raising=False)
    monkeypatch.setattr(connect, "SqliteJournal", RemoteJournal)
    RemoteJournal.gate.set()
    return config(tmp_path, limits={"remembered": 4})


async def aged(service: Service) -> tuple[RemoteJournal, Any]:
    """A decision that is in the journal alone."""
    assert isinstance(service.journal, RemoteJournal)
    await add_articles(service, 3)
    made = await service.decide(DecideRequest(user=USER, request="old"))
    await forgotten(service)
    assert service.recent.get(service.signer.check(made.decision)[0]) is None
    while service.journal.arrived.acquire(blocking=False):
        pass
    return service.journal, made


async def forgotten(service: Service) -> None:
    """So many decisions that those before are in memory no more."""
    for _ in range(50):
        await service.decide(DecideRequest(user=USER))


def both(settings: Config, work: Callable[[Service], Awaitable[str]]) -> None:
    """The work, and afterwards a fold that finds the same."""
    assert run(settings, work) == folded(settings).fingerprint()


def test_others_are_answered_during_a_remote_lookup(settings: Config) -> None:
    async def work(service: Service) -> str:
        journal, made = await aged(service)
        journal.gate.clear()
        paid = asyncio.create_task(service.feedback(FeedbackRequest(made.decision, 1.0)))
        again, new = (
            asyncio.create_task(service.decide(DecideRequest(user=USER, request=request)))
            for request in ("old", "new")
        )
        await journal.reached()
        other = await service.decide(DecideRequest(user=USER))
        await service.feedback(FeedbackRequest(other.decision, 1.0))
        assert [each.done() for each in (paid, again, new)] == [False] * 3
        journal.gate.set()
        assert not (await paid).repeated
        assert await again == made
        assert await new != made
        return service.state.fingerprint()

    both(settings, work)


def test_copies_that_wait_for_a_lookup_count_once(settings: Config) -> None:
    async def work(service: Service) -> str:
        _, made = await aged(service)
        given = FeedbackRequest(made.decision, 1.0)
        answers = await asyncio.gather(*(service.feedback(given) for _ in range(5)))
        assert [each.repeated for each in answers].count(False) == 1
        for request in ("old", "new"):
            asked = DecideRequest(user=USER, request=request)
            copies = await asyncio.gather(*(service.decide(asked) for _ in range(5)))
            assert copies == [copies[0]] * 5
            assert (copies[0] == made) == (request == "old")
        with pytest.raises(ApiError, match="payoff is"):
            await service.feedback(FeedbackRequest(made.decision, 0.0))
        with pytest.raises(ApiError, match="something else"):
            await service.decide(DecideRequest(user=USER, request="old", slots=2))
        return service.state.fingerprint()

    both(settings, work)


def test_what_was_paid_and_dropped_during_a_lookup_is_not_paid_again(settings: Config) -> None:
    async def work(service: Service) -> str:
        journal, made = await aged(service)
        given = FeedbackRequest(made.decision, 1.0)
        journal.gate.clear()
        late = asyncio.create_task(service.feedback(given))
        await journal.reached()
        with quick(service):
            assert not (await service.feedback(given)).repeated
            await forgotten(service)
        journal.gate.set()
        assert (await late).repeated
        return service.state.fingerprint()

    both(settings, work)


def test_what_was_decided_and_dropped_during_a_lookup_is_not_decided_again(
    settings: Config,
) -> None:
    async def work(service: Service) -> str:
        journal, _ = await aged(service)
        asked = DecideRequest(user=USER, request="new")
        journal.gate.clear()
        late = asyncio.create_task(service.decide(asked))
        await journal.reached()
        with quick(service):
            made = await service.decide(asked)
            await forgotten(service)
        journal.gate.set()
        assert await late == made
        return service.state.fingerprint()

    both(settings, work)


@contextmanager
def quick(service: Service) -> Iterator[None]:
    """Lookups have their answers at once."""
    through = threading.Event()
    through.set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.recent.lookups, "remote", False)
        patch.setattr(RemoteJournal, "gate", through)
        patch.setattr(RemoteJournal, "waited_for", True)
        yield


def test_a_lookup_that_fails_is_refused_and_nothing_else_is(settings: Config) -> None:
    async def work(service: Service) -> str:
        journal, made = await aged(service)
        journal.fails = True
        for asking in (
            service.feedback(FeedbackRequest(made.decision, 1.0)),
            service.decide(DecideRequest(user=USER, request="old")),
        ):
            with pytest.raises(Unavailable, match="cannot be read: nobody answers"):
                await asking
        await forgotten(service)
        assert len(service.recent) < 40  # nothing is kept for their sake
        journal.fails = False
        assert not (await service.feedback(FeedbackRequest(made.decision, 1.0))).repeated
        return service.state.fingerprint()

    both(settings, work)


def test_a_decision_that_is_nowhere_is_unknown(settings: Config) -> None:
    async def work(service: Service) -> str:
        await aged(service)
        token = service.signer.sign(10**6, service.clock.now() + 10**9)
        with pytest.raises(ApiError, match="not in the journal"):
            await service.feedback(FeedbackRequest(token, 1.0))
        return service.state.fingerprint()

    both(settings, work)
