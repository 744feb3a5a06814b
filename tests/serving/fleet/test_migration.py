"""A journal of the version before has everything after its tables were brought up to date."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.serving.fleet.test_pipeline import decide, fleet_config, fold_is_done, learning, pay
from tests.serving.making import SIGNER, run
from tests.serving.service.test_service import USER

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import DecideRequest, FeedbackRequest
from topstory.serving.fleet.front.process import Front
from topstory.serving.fleet.learner.candidate import LearnerCandidate
from topstory.serving.journal.connect import own_journal
from topstory.serving.journal.journal import JournalError
from topstory.serving.journal.postgres.journal import PostgresJournal
from topstory.serving.journal.postgres.schema import VERSION
from topstory.serving.service.service import Service
from topstory.serving.upkeep.verification import verify


def make_version_2(url: str) -> None:
    """The tables as the version before had them."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = topstory")
        connection.execute("DROP TABLE node, inbox, edition, model, shared, call, lease")
        connection.execute("DROP FUNCTION hand_in")
        connection.execute("ALTER TABLE journal DROP COLUMN origin")
        connection.execute("UPDATE meta SET version = 2")


def test_a_service_becomes_a_fleet_while_its_payoffs_still_come(tmp_path: Path, url: str) -> None:
    settings = fleet_config(tmp_path, url, signing={"k1": "00" * 32})  # as SIGNER
    tokens: list[str] = []

    async def before(service: Service) -> None:
        for _ in range(3):
            tokens.append((await service.decide(DecideRequest(USER, request="before"))).decision)
            tokens.append((await service.decide(DecideRequest(USER))).decision)
        await service.feedback(FeedbackRequest(tokens[1], 1.0))

    run(settings, before)
    make_version_2(url)
    records = verify(url).records

    async def after(front: Front) -> None:
        async with front.background():
            assert (await pay(front, tokens[1], 1.0)).repeated
            with pytest.raises(ApiError, match=r"payoff is 1\.0, not 0\.0"):
                await pay(front, tokens[1], 0.0)
            assert not (await pay(front, tokens[3], 1.0)).repeated
            assert (await pay(front, tokens[3], 1.0)).repeated
            again = await decide(front, DecideRequest(USER, request="before"))
            assert again.decision == tokens[0]
            number, expires = SIGNER.check(tokens[0])
            with pytest.raises(ApiError, match="never final"):
                await pay(front, SIGNER.sign(number, expires + 1), 1.0)

    with learning(settings):
        front = Front(settings)
        asyncio.run(after(front))
        fold_is_done(url, 2)
        front.close()
    assert verify(url).records > records + 1


def test_a_learner_waits_for_a_service_of_the_version_before(tmp_path: Path, url: str) -> None:
    settings = fleet_config(tmp_path, url)
    old = own_journal(settings)
    make_version_2(url)
    stop, found = threading.Event(), []
    candidate = LearnerCandidate(settings, stop)
    waiting = threading.Thread(target=lambda: found.append(candidate.wait()))
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    with closing(PostgresJournal(url, own=False)) as reading:
        assert reading.version == 2
    old.close()
    waiting.join(30)
    (journal,) = found
    assert journal is not None
    assert journal.version == VERSION
    with pytest.raises(JournalError, match="owns this journal"):
        own_journal(settings)
    journal.close()
