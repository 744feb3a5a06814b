"""Deciding and learning, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.serving.making import (
    D,
    Made,
    add_articles,
    config,
    folded,
    refused,
    run,
    visitor,
    visits,
)

import topstory as ts
from topstory.serving.api.errors import ApiError, Unavailable
from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.journal.records import Decided, Paid
from topstory.serving.service.sequencer.recent_decisions import TRIM_INTERVAL
from topstory.serving.service.service import Service
from topstory.serving.state.pool import context

USER = (0.2, 0.3, 0.5, 1.0)


def test_only_teaching_buckets_teach_and_the_state_equals_learning_in_the_journals_order(
    tmp_path: Path,
) -> None:
    settings = config(tmp_path, traffic={"uniform_teaches": False})

    async def work(service: Service) -> str:
        await add_articles(service)
        for seed in range(6):
            await visits(service, 40, seed)
        return service.state.fingerprint()

    fingerprint = run(settings, work)
    state = folded(settings)
    assert state.fingerprint() == fingerprint
    plain = ts.policy("linucb-hybrid")
    for article in state.pools["front"].articles.values():
        plain.add_article(article.facts.id, article.facts.features)
    made = Made(settings)
    taught = 0
    for entry, decided in made.folder.journal.read():
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
    settings = config(tmp_path, policy={"name": name})

    async def work(service: Service) -> str:
        await add_articles(service)
        await visits(service, 40)
        return service.state.fingerprint()

    assert run(settings, work) == folded(settings).fingerprint()


def test_a_visitor_stays_in_one_bucket(tmp_path: Path) -> None:
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
    settings = config(
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

    run(settings, work)


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

    settings = config(tmp_path, traffic={"learning": 0, "deployment": 1, "uniform": 0})
    run(settings, work)


def test_contexts_and_payoffs_out_of_bounds_are_refused(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 1)
        for user in ((1.0,), (float("nan"), 0, 0, 1.0), (1e300, 0, 0, 1.0), {"age": 3}):
            with pytest.raises(ApiError) as caught:
                await service.decide(DecideRequest(user=user))
            assert caught.value.status == 422
        made = await service.decide(DecideRequest(user=USER))
        for payoff in (float("inf"), 1e9):
            with pytest.raises(ApiError) as caught:
                await service.feedback(FeedbackRequest(decision=made.decision, payoff=payoff))
            assert refused(caught) == (422, "bad_payoff")

    run(config(tmp_path), work)


@pytest.mark.parametrize("field", ["request", "visitor"])
def test_no_client_id_has_a_character_that_databases_cannot_keep(field: str) -> None:
    """PostgreSQL's text has no NUL: one such id would fail the commit of everybody's records."""
    decoder = msgspec.json.Decoder(DecideRequest)
    body = b'{"user": [1], "%s": "a%sb\\n"}'
    request = decoder.decode(body % (field.encode(), b"\\u0001\\n\xc3\xbc"))
    assert getattr(request, field) == "a\x01\nüb\n"
    with pytest.raises(msgspec.ValidationError):
        decoder.decode(body % (field.encode(), b"\\u0000"))


class Profiles:
    """A feature model for tests: one number, spelled out."""

    identity = "0" * 16

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
        service.front.features = Profiles()
        await service.put_article("front", "cup", ArticleRequest(profile={"sport": 1}))
        await service.decide(DecideRequest(user={"age": 33}))
        assert service.state.pools["front"].articles["cup"].facts.features == (1.0, 1.0)
        for profile in ({}, {"age": "old"}):
            with pytest.raises(ApiError) as caught:
                await service.decide(DecideRequest(user=profile))
            assert refused(caught) == (422, "bad_profile")

    run(config(tmp_path), work)


def test_pools_have_articles_and_policies_of_their_own(tmp_path: Path) -> None:
    settings = config(
        tmp_path, pools={"front": {}, "sports": {"policy": {"name": "ucb", "alpha": 0.1}}}
    )

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        await add_articles(service, 3, "sports")
        await service.decide(DecideRequest(user=USER, pool="sports"))
        assert len(service.state.pools["front"].articles) == 2
        assert service.state.pools["sports"].policy.model.name == "context-free"
        assert sum(map(sum, service.state.pools["front"].tally.shows)) == 0
        with pytest.raises(ApiError) as caught:
            await service.decide(DecideRequest(user=USER, pool="arts"))
        assert refused(caught) == (404, "unknown_pool")

    run(settings, work)


def test_a_pool_can_begin_with_a_trained_policy(tmp_path: Path) -> None:
    trained = ts.policy("linucb-disjoint", alpha=0.5)
    trained.learn(USER, "a", 1.0)
    trained.learn(USER, "b", 0.0)
    trained.save(tmp_path / "trained.safetensors")
    settings = config(
        tmp_path / "data",
        policy={"name": "linucb-disjoint", "start": str(tmp_path / "trained.safetensors")},
        traffic={"learning": 0, "deployment": 1, "uniform": 0},
    )

    async def work(service: Service) -> str:
        for article in ("a", "b"):
            await service.put_article("front", article, ArticleRequest())
        assert (await service.decide(DecideRequest(user=USER))).article == "a"
        return service.state.fingerprint()

    fingerprint = run(settings, work)
    (tmp_path / "trained.safetensors").unlink()  # it was copied
    assert folded(settings).fingerprint() == fingerprint


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
        assert len(service.recent) <= 10 + TRIM_INTERVAL
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

    settings = config(tmp_path, journal={"decisions": "relaxed"})
    assert run(settings, work) == folded(settings).fingerprint()


def test_the_id_of_a_relaxed_decision_that_a_crash_lost_pays_no_other(tmp_path: Path) -> None:
    settings = config(tmp_path, journal={"decisions": "relaxed"})
    run(settings, lambda service: add_articles(service, 2))

    async def lost(service: Service) -> str:
        service.commits._run = lambda: asyncio.sleep(0)  # type: ignore[method-assign]  # kill -9
        decision = (await service.decide(DecideRequest(user=USER))).decision
        service.commits._task = None
        return decision

    token = run(settings, lost)

    async def after(service: Service) -> None:
        made = await service.decide(DecideRequest(user=USER))
        numbers = [service.signer.check(each)[0] for each in (token, made.decision)]
        assert numbers[0] == numbers[1]  # it is given again
        with pytest.raises(ApiError) as caught:
            await service.feedback(FeedbackRequest(decision=token, payoff=1.0))
        assert refused(caught) == (404, "unknown_decision")
        await service.feedback(FeedbackRequest(decision=made.decision, payoff=0.0))

    run(settings, after)
