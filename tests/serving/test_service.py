"""Deciding and learning, without HTTP."""

from __future__ import annotations

import asyncio
import hmac
from base64 import urlsafe_b64decode
from collections.abc import MutableMapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.serving.making import D, Made, add_articles, config, folded, run, visitor, visits

import topstory as ts
from topstory.serving.clock import SECOND, Clock
from topstory.serving.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.pool import context
from topstory.serving.records import ArticleFacts, Decided, Paid
from topstory.serving.refusals import Refused, Unavailable
from topstory.serving.remembering import ROUND
from topstory.serving.service import Service
from topstory.serving.signing import Signer
from topstory.serving.times import moment
from topstory.serving.views import AT_A_TIME, article_views

USER = (0.2, 0.3, 0.5, 1.0)


def stopped(service: Service) -> list[int]:
    """Stop the service's clock; the time is what the list says."""
    wall = [service.clock.now() + SECOND]
    service.clock = Clock(service.clock.now(), wall=lambda: wall[0], steady=lambda: 0)
    return wall


def refused(caught: pytest.ExceptionInfo[Refused]) -> tuple[int, str]:
    return caught.value.status, caught.value.reason


def test_only_teaching_buckets_teach_and_the_state_equals_learning_in_the_journals_order(
    tmp_path: Path,
) -> None:
    told = config(tmp_path, traffic={"uniform_teaches": False})

    async def work(service: Service) -> str:
        await add_articles(service)
        for seed in range(6):
            await visits(service, 40, seed)
        return service.state.fingerprint()

    fingerprint = run(told, work)
    state = folded(told)
    assert state.fingerprint() == fingerprint
    plain = ts.policy("linucb-hybrid")
    for article in state.pools["front"].articles.values():
        plain.add_article(article.facts.id, article.facts.features)
    made = Made(told)
    taught = 0
    for entry, decided in made.opening.journal.read():
        record = entry.record
        if isinstance(record, Decided) and record.bucket == 0:
            plain.shown(context(record.user), record.article)
            taught += 1
        if isinstance(record, Paid) and decided is not None and decided.bucket == 0:
            plain.paid(context(decided.user), decided.article, record.payoff)
    made.crash()
    learned = state.pools["front"].policy.model.learned()
    assert 60 < taught < 180
    for name, array in plain.model.learned().items():
        np.testing.assert_array_equal(array, learned[name], name)


@pytest.mark.parametrize("name", ["ucb", "egreedy-seg", "linucb-disjoint"])
def test_every_kind_of_model_can_be_served_and_folded(tmp_path: Path, name: str) -> None:
    told = config(tmp_path, policy={"name": name})

    async def work(service: Service) -> str:
        await add_articles(service)
        await visits(service, 40)
        return service.state.fingerprint()

    assert run(told, work) == folded(told).fingerprint()


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
        with pytest.raises(Refused) as caught:
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=0.0))
        assert refused(caught) == (409, "payoff_conflict")

    run(config(tmp_path), work)


def test_a_payoff_is_remembered_over_a_restart(tmp_path: Path) -> None:
    told = config(tmp_path)

    async def before(service: Service) -> str:
        await add_articles(service)
        made = await service.decide(DecideRequest(user=USER, request="r1"))
        await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))
        return made.decision

    decision = run(told, before)

    async def after(service: Service) -> None:
        again = await service.decide(DecideRequest(user=USER, request="r1"))
        assert again.decision == decision
        assert (await service.feedback(FeedbackRequest(decision=decision, payoff=1.0))).repeated
        with pytest.raises(Refused) as caught:
            await service.feedback(FeedbackRequest(decision=decision, payoff=2.0))
        assert refused(caught) == (409, "payoff_conflict")

    run(told, after)


def test_repeating_a_request_returns_the_same_decision(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service)
        asked = DecideRequest(user=USER, request="abc", slots=3)
        answers = await asyncio.gather(*(service.decide(asked) for _ in range(5)))
        assert len(set(answers)) == 1
        assert await service.decide(asked) == answers[0]
        assert service.state.pools["front"].tally.shows != []
        assert sum(map(sum, service.state.pools["front"].tally.shows)) == 1
        with pytest.raises(Refused) as caught:
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
            with pytest.raises(Refused) as caught:
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
        with pytest.raises(Refused) as caught:
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))
        assert refused(caught) == (410, "expired_decision")

    run(config(tmp_path, window_seconds=10), work)


def test_ids_signed_by_an_old_key_stay_good_while_it_is_listed() -> None:
    old = Signer({"k1": bytes(32)})
    both = Signer({"k1": bytes(32), "k2": b"y" * 32})
    assert both.check(old.sign(5, 6)) == (5, 6)
    assert both.sign(5, 6).startswith("k2.")
    with pytest.raises(Refused):
        Signer({"k2": b"y" * 32}).check(old.sign(5, 6))


@pytest.mark.parametrize("length", [32, 64, 65, 100])
def test_an_id_ends_with_the_first_half_of_an_hmac_sha256(length: int) -> None:
    key = bytes(range(length))
    token = Signer({"k1": key}).sign(5, 6)
    raw = urlsafe_b64decode(token.partition(".")[2] + "=")
    assert raw[16:] == hmac.digest(key, raw[:16], "sha256")[:16]


def test_a_visitor_stays_in_his_bucket(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service)
        for name in ("ann", "bob", "cem"):
            asked = [DecideRequest(user=USER, visitor=name) for _ in range(5)]
            made = await asyncio.gather(*(service.decide(each) for each in asked))
            assert len({each.bucket for each in made}) == 1

    run(config(tmp_path), work)


def test_propensities_over_the_mix_are_the_shares_of_what_is_shown(tmp_path: Path) -> None:
    """A fixed user: each article's frequency matches its propensity; chi-square, p > 0.001."""
    from scipy.stats import chisquare

    # Nobody teaches, so that every decision is of the same state.
    told = config(
        tmp_path,
        policy={"name": "egreedy-disjoint", "epsilon": 0.3},
        traffic={"learning": 0, "deployment": 0.7, "uniform": 0.3, "uniform_teaches": False},
    )

    async def work(service: Service) -> None:
        await add_articles(service, 4)
        made = await asyncio.gather(
            *(service.decide(DecideRequest(user=USER)) for _ in range(1500))
        )
        chances = {each.article: each.propensity for each in made}
        for each in made:
            assert each.propensity == chances[each.article]
        assert sum(chances.values()) == pytest.approx(1.0)
        shown = [sum(each.article == article for each in made) for article in chances]
        expected = np.array(list(chances.values())) * len(made)
        assert chisquare(shown, expected).pvalue > 0.001

    run(told, work)


def test_a_ranking_has_as_many_articles_as_slots_and_none_twice(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service)
        random = np.random.default_rng(3)
        for slots in (1, 3, 5, 9):
            made = await service.decide(DecideRequest(user=visitor(random), slots=slots))
            assert made.ranking[0] == made.article
            assert len(set(made.ranking)) == len(made.ranking) == min(slots, 5)
        made = await service.decide(
            DecideRequest(user=USER, slots=9, exclude=("article-0", "article-1", "elsewhere"))
        )
        assert sorted(made.ranking) == ["article-2", "article-3", "article-4"]

    run(config(tmp_path), work)


def test_the_deployment_bucket_ranks_by_estimate(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service)
        pool = service.state.pools["front"]
        random = np.random.default_rng(5)
        for _ in range(50):
            user, article = visitor(random), f"article-{random.integers(5)}"
            pool.policy.learn(user, article, float(random.random() < 0.3))
        made = await service.decide(DecideRequest(user=USER, slots=5))
        order = np.argsort(-pool.policy.estimates(USER, list(pool.articles)), kind="stable")
        assert list(made.ranking) == [list(pool.articles)[place] for place in order]

    told = config(tmp_path, traffic={"learning": 0, "deployment": 1, "uniform": 0})
    run(told, work)


def test_articles_are_shown_from_their_time_until_their_time(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        wall = stopped(service)
        now = wall[0]
        span = {"soon": (now + 40_000, None), "going": (None, now + 40_000), "past": (None, 1)}
        for name, (begins, ends) in span.items():
            said = ArticleRequest(
                begins=None if begins is None else moment(begins),
                ends=None if ends is None else moment(ends),
            )
            await service.put_article("front", name, said)
        assert (await service.decide(DecideRequest(user=USER, slots=3))).ranking == ("going",)
        wall[0] += 39_999
        assert (await service.decide(DecideRequest(user=USER, slots=3))).ranking == ("going",)
        wall[0] += 1
        assert (await service.decide(DecideRequest(user=USER, slots=3))).ranking == ("soon",)
        await service.remove_article("front", "soon")
        with pytest.raises(Refused) as caught:
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
        views = await article_views(service, "front")
        visiting.cancel()
        assert [each.id for each in views] == [f"article-{number}" for number in range(299)]
        assert turns >= 300 // AT_A_TIME

    run(config(tmp_path), work)


def test_a_payoff_for_an_article_that_was_removed_is_taken_and_teaches_nothing(
    tmp_path: Path,
) -> None:
    told = config(tmp_path, traffic={"learning": 1, "deployment": 0, "uniform": 0})

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

    assert run(told, work) == folded(told).fingerprint()


def test_a_pool_that_was_emptied_still_says_how_many_features_it_takes(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 1)
        await service.remove_article("front", "article-0")
        with pytest.raises(Refused) as caught:
            await service.put_article("front", "odd", ArticleRequest(features=(1.0,)))
        assert refused(caught) == (409, "features_conflict")

    run(config(tmp_path), work)


def test_features_that_do_not_fit_are_refused_before_they_are_journalled(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 1)
        number = service.state.number
        with pytest.raises(Refused) as caught:
            await service.put_article("front", "odd", ArticleRequest(features=(1.0,)))
        assert refused(caught) == (409, "features_conflict")
        with pytest.raises(Refused) as caught:
            await service.put_article("front", "article-0", ArticleRequest(features=(9.0, 9, 1)))
        assert refused(caught) == (409, "features_conflict")
        with pytest.raises(Refused) as caught:
            await service.put_article("front", "big", ArticleRequest(features=(1e9, 0.0, 1.0)))
        assert refused(caught) == (422, "bad_article")
        east, west = timezone(timedelta(hours=14)), timezone(-timedelta(hours=14))
        for out in (
            ArticleRequest(begins=datetime(1, 1, 1, tzinfo=east)),
            ArticleRequest(ends=datetime(9999, 12, 31, 23, tzinfo=west)),
        ):
            with pytest.raises(Refused, match="in UTC") as caught:
                await service.put_article("front", "never", out)
            assert refused(caught) == (422, "bad_article")
        assert service.state.number == number

    run(config(tmp_path), work)


def test_contexts_and_payoffs_out_of_bounds_are_refused(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 1)
        for user in ((1.0,), (float("nan"), 0, 0, 1.0), (1e300, 0, 0, 1.0), {"age": 3}):
            with pytest.raises(Refused) as caught:
                await service.decide(DecideRequest(user=user))
            assert caught.value.status == 422
        made = await service.decide(DecideRequest(user=USER))
        for payoff in (float("inf"), 1e9):
            with pytest.raises(Refused) as caught:
                await service.feedback(FeedbackRequest(decision=made.decision, payoff=payoff))
            assert refused(caught) == (422, "bad_payoff")

    run(config(tmp_path), work)


@pytest.mark.parametrize("field", ["request", "visitor"])
def test_no_client_id_has_a_character_that_databases_cannot_keep(field: str) -> None:
    """PostgreSQL's text has no NUL: one such id would fail the commit of everybody's records."""
    decoder = msgspec.json.Decoder(DecideRequest)
    body = b'{"user": [1], "%s": "a%sb\\n"}'
    told = decoder.decode(body % (field.encode(), b"\\u0001\\n\xc3\xbc"))
    assert getattr(told, field) == "a\x01\nüb\n"
    with pytest.raises(msgspec.ValidationError):
        decoder.decode(body % (field.encode(), b"\\u0000"))


class Profiles:
    """A feature model for tests: one number, spelled out."""

    def __init__(self) -> None:
        self.unknown: MutableMapping[str, int] = {}

    def user(self, profile: object) -> list[float]:
        assert isinstance(profile, dict)
        return [float(profile["age"]) / 100] + [0.0] * (D - 2) + [1.0]

    def article(self, profile: object) -> list[float]:
        assert isinstance(profile, dict)
        return [float(profile["sport"]), 1.0]


def test_with_a_feature_model_raw_profiles_are_taken(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        service.features = Profiles()
        await service.put_article("front", "cup", ArticleRequest(profile={"sport": 1}))
        await service.decide(DecideRequest(user={"age": 33}))
        assert service.state.pools["front"].articles["cup"].facts.features == (1.0, 1.0)
        for profile in ({}, {"age": "old"}):
            with pytest.raises(Refused) as caught:
                await service.decide(DecideRequest(user=profile))
            assert refused(caught) == (422, "bad_profile")

    run(config(tmp_path), work)


def test_pools_have_articles_and_policies_of_their_own(tmp_path: Path) -> None:
    told = config(
        tmp_path, pools={"front": {}, "sports": {"policy": {"name": "ucb", "alpha": 0.1}}}
    )

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        await add_articles(service, 3, "sports")
        await service.decide(DecideRequest(user=USER, pool="sports"))
        assert len(service.state.pools["front"].articles) == 2
        assert service.state.pools["sports"].policy.model.name == "context-free"
        assert sum(map(sum, service.state.pools["front"].tally.shows)) == 0
        with pytest.raises(Refused) as caught:
            await service.decide(DecideRequest(user=USER, pool="arts"))
        assert refused(caught) == (404, "unknown_pool")

    run(told, work)


def test_a_pool_can_begin_with_a_trained_policy(tmp_path: Path) -> None:
    trained = ts.policy("linucb-disjoint", alpha=0.5)
    trained.learn(USER, "a", 1.0)
    trained.learn(USER, "b", 0.0)
    trained.save(tmp_path / "trained.safetensors")
    told = config(
        tmp_path / "data",
        policy={"name": "linucb-disjoint", "start": str(tmp_path / "trained.safetensors")},
        traffic={"learning": 0, "deployment": 1, "uniform": 0},
    )

    async def work(service: Service) -> str:
        for article in ("a", "b"):
            await service.put_article("front", article, ArticleRequest())
        assert (await service.decide(DecideRequest(user=USER))).article == "a"
        return service.state.fingerprint()

    fingerprint = run(told, work)
    (tmp_path / "trained.safetensors").unlink()  # it was copied
    assert folded(told).fingerprint() == fingerprint


def test_too_many_waiting_records_are_refused(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 1)
        asked = (service.decide(DecideRequest(user=USER)) for _ in range(30))
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        refusals = [each for each in outcomes if isinstance(each, Unavailable)]
        assert {each.reason for each in refusals} == {"overloaded"}
        assert len(outcomes) - len(refusals) == 20
        await service.decide(DecideRequest(user=USER))

    run(config(tmp_path, limits={"waiting": 20}), work)


def test_memory_is_bounded_and_older_decisions_are_found_in_the_journal(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 2)
        first = await service.decide(DecideRequest(user=USER, request="first"))
        for number in range(40):
            await service.decide(DecideRequest(user=USER, request=f"r{number}"))
        assert len(service.memory) <= 10 + ROUND
        again = await service.decide(DecideRequest(user=USER, request="first"))
        assert again == first
        answer = await service.feedback(FeedbackRequest(decision=first.decision, payoff=1.0))
        assert not answer.repeated

    run(config(tmp_path, limits={"remembered": 10}), work)


def test_relaxed_decisions_do_not_wait_for_the_disk(tmp_path: Path) -> None:
    async def work(service: Service) -> str:
        await add_articles(service, 2)
        committed = service.commits.count
        made = [await service.decide(DecideRequest(user=USER)) for _ in range(5)]
        assert service.commits.count <= committed + 1
        for each in made:
            await service.feedback(FeedbackRequest(decision=each.decision, payoff=1.0))
        return service.state.fingerprint()

    told = config(tmp_path, journal={"decisions": "relaxed"})
    assert run(told, work) == folded(told).fingerprint()


def test_the_id_of_a_relaxed_decision_that_a_crash_lost_pays_no_other(tmp_path: Path) -> None:
    told = config(tmp_path, journal={"decisions": "relaxed"})
    run(told, lambda service: add_articles(service, 2))

    async def lost(service: Service) -> str:
        service.commits._run = lambda: asyncio.sleep(0)  # type: ignore[method-assign]  # kill -9
        decision = (await service.decide(DecideRequest(user=USER))).decision
        service.commits._task = None
        return decision

    token = run(told, lost)

    async def after(service: Service) -> None:
        made = await service.decide(DecideRequest(user=USER))
        numbers = [service.signer.check(each)[0] for each in (token, made.decision)]
        assert numbers[0] == numbers[1]  # it is given again
        with pytest.raises(Refused) as caught:
            await service.feedback(FeedbackRequest(decision=token, payoff=1.0))
        assert refused(caught) == (404, "unknown_decision")
        await service.feedback(FeedbackRequest(decision=made.decision, payoff=0.0))

    run(told, after)
