"""A payoff counts once, for the decision whose id only this service can make."""

from __future__ import annotations

import asyncio
import hmac
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import pytest
from tests.serving.making import (
    add_articles,
    config,
    refused,
    run,
    stopped,
)

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import DecideRequest, FeedbackRequest
from topstory.serving.journal.clock import SECOND
from topstory.serving.journal.records import Entry
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.service import Service

USER = (0.2, 0.3, 0.5, 1.0)


def test_a_payoff_counts_once_however_often_it_is_sent(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service)
        made = await service.decide(DecideRequest(user=USER))
        given = FeedbackRequest(decision=made.decision, payoff=1.0)
        # All at once: the copies wait for the first one's commit.
        answers = await asyncio.gather(*(service.feedback(given) for _ in range(10)))
        assert sorted(answer.repeated for answer in answers) == [False] + [True] * 9
        before = service.state.fingerprint()
        assert (await service.feedback(given)).repeated
        assert service.state.fingerprint() == before
        with pytest.raises(ApiError) as caught:
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=0.0))
        assert refused(caught) == (409, "payoff_conflict")

    run(config(tmp_path), work)


def test_a_copy_of_a_payoff_that_is_being_committed_waits_and_harms_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal would refuse the second one, and with it all that share its commit."""

    async def work(service: Service) -> None:
        await add_articles(service)
        one, two = [await service.decide(DecideRequest(user=USER)) for _ in range(2)]
        append, released = service.journal.append, Event()

        def slow(entries: Sequence[Entry]) -> None:
            released.wait(60)
            append(entries)

        monkeypatch.setattr(service.journal, "append", slow)
        service.commits._quick = False  # so the loop goes on meanwhile
        tasks = [asyncio.create_task(service.feedback(FeedbackRequest(one.decision, 1.0)))]
        while not service.commits.in_flight:
            await asyncio.sleep(0)
        for decision, payoff in ((one, 1.0), (two, 1.0), (one, 0.0)):
            given = FeedbackRequest(decision.decision, payoff)
            tasks.append(asyncio.create_task(service.feedback(given)))
        for _ in range(10):
            await asyncio.sleep(0)
        released.set()
        first, again, other = await asyncio.gather(*tasks[:3])
        assert [each.repeated for each in (first, again, other)] == [False, True, False]
        with pytest.raises(ApiError) as caught:
            await tasks[3]
        assert refused(caught) == (409, "payoff_conflict")
        assert sum(map(sum, service.state.pools["front"].tally.payoff)) == 2

    run(config(tmp_path), work)


def test_of_payoffs_that_come_together_as_many_are_recorded_as_there_is_room_for(
    tmp_path: Path,
) -> None:
    async def work(service: Service) -> None:
        await add_articles(service)
        made = [await service.decide(DecideRequest(user=USER)) for _ in range(5)]
        given = [FeedbackRequest(decision=each.decision, payoff=1.0) for each in made]
        answers = await asyncio.gather(*map(service.feedback, given), return_exceptions=True)
        refused = [each.reason for each in answers if isinstance(each, ApiError)]
        assert refused == ["overloaded"] * 2
        again = await asyncio.gather(*map(service.feedback, given[:3]))
        assert all(each.repeated for each in again)
        assert not (await service.feedback(given[3])).repeated
        assert sum(map(sum, service.state.pools["front"].tally.payoff)) == 4

    run(config(tmp_path, limits={"waiting": 3}), work)


def test_a_payoff_is_remembered_over_a_restart(tmp_path: Path) -> None:
    settings = config(tmp_path)

    async def before(service: Service) -> str:
        await add_articles(service)
        made = await service.decide(DecideRequest(user=USER, request="r1"))
        await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))
        return made.decision

    decision = run(settings, before)

    async def after(service: Service) -> None:
        again = await service.decide(DecideRequest(user=USER, request="r1"))
        assert again.decision == decision
        assert (await service.feedback(FeedbackRequest(decision=decision, payoff=1.0))).repeated
        with pytest.raises(ApiError) as caught:
            await service.feedback(FeedbackRequest(decision=decision, payoff=0.5))
        assert refused(caught) == (409, "payoff_conflict")

    run(settings, after)


def test_repeating_a_request_returns_the_same_decision(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service)
        asked = DecideRequest(user=USER, request="abc", slots=3)
        answers = await asyncio.gather(*(service.decide(asked) for _ in range(5)))
        assert len(set(answers)) == 1
        assert await service.decide(asked) == answers[0]
        assert service.state.pools["front"].tally.shows != []
        assert sum(map(sum, service.state.pools["front"].tally.shows)) == 1
        with pytest.raises(ApiError) as caught:
            await service.decide(DecideRequest(user=USER, request="abc", slots=2))
        assert refused(caught) == (409, "request_conflict")

    run(config(tmp_path), work)


def test_two_copies_of_a_request_that_wait_for_an_edit_are_one_decision(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 2)
        edit = asyncio.create_task(service.remove_article("front", "article-0"))
        await asyncio.sleep(0)
        asked = DecideRequest(user=USER, request="twice")
        one, two = await asyncio.gather(service.decide(asked), service.decide(asked))
        assert one == two
        await edit

    run(config(tmp_path), work)


def test_forged_foreign_unknown_and_expired_decisions_are_refused(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service)
        made = await service.decide(DecideRequest(user=USER))
        far = service.clock.now() + 10**9
        body = made.decision
        flipped = body[:10] + ("A" if body[10] != "A" else "B") + body[11:]
        foreign = Signer({"k1": b"x" * 32}).sign(1, far)
        for token, outcome in {
            flipped: (403, "forged_decision"),
            foreign: (403, "forged_decision"),
            "k2" + body[2:]: (403, "forged_decision"),
            "nonsense": (403, "forged_decision"),
            "k1." + "ü" * 43: (403, "forged_decision"),
            service.signer.sign(999_999, far): (404, "unknown_decision"),
            service.signer.sign(1, far): (404, "unknown_decision"),  # a record, but no decision
            service.signer.sign(10, 1): (410, "expired_decision"),
        }.items():
            with pytest.raises(ApiError) as caught:
                await service.feedback(FeedbackRequest(decision=token, payoff=1.0))
            assert refused(caught) == outcome, token

    run(config(tmp_path), work)


def test_feedback_is_refused_after_the_window(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service)
        wall = stopped(service)
        made = await service.decide(DecideRequest(user=USER))
        wall[0] += 10 * SECOND
        assert not (
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))
        ).repeated
        wall[0] += 1
        with pytest.raises(ApiError) as caught:
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))
        assert refused(caught) == (410, "expired_decision")

    run(config(tmp_path, window_seconds=10), work)


def test_ids_signed_by_an_old_key_stay_good_while_it_is_listed() -> None:
    old = Signer({"k1": bytes(32)})
    both = Signer({"k1": bytes(32), "k2": b"y" * 32})
    assert both.check(old.sign(5, 6)) == (5, 6)
    assert both.sign(5, 6).startswith("k2.")
    with pytest.raises(ApiError):
        Signer({"k2": b"y" * 32}).check(old.sign(5, 6))


def test_an_id_is_refused_if_any_of_its_characters_is_changed() -> None:
    signer = Signer({"k1": bytes(32)})
    token = signer.sign(123_456, 1_700_000_000_000_000)
    for place, was in enumerate(token):
        for other in "AQgw0+/=-_. é\n":  # the last character has bits that no byte needs
            if other != was:
                with pytest.raises(ApiError, match="not signed by this service"):
                    signer.check(token[:place] + other + token[place + 1 :])
    for other in (token[:-1], f"{token}A", token[3:], ""):
        with pytest.raises(ApiError, match="not signed by this service"):
            signer.check(other)


@pytest.mark.parametrize("length", [32, 64, 65, 100])
def test_an_id_ends_with_the_first_half_of_an_hmac_sha256(length: int) -> None:
    key = bytes(range(length))
    token = Signer({"k1": key}).sign(5, 6)
    raw = urlsafe_b64decode(token.partition(".")[2] + "=")
    assert raw[16:] == hmac.digest(key, raw[:16], "sha256")[:16]
