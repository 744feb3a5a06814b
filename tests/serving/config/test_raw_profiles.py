"""Raw profiles in, through the features that were learned from a log: the loop closed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.features.worlds import clear_builder, clear_world, little_log, mixed_log
from tests.serving.making import config, run
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.http.prometheus import Metrics
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.upkeep.keeper import Keeper


def test_simulated_visitors_are_served_by_their_raw_profiles(tmp_path: Path) -> None:
    world, builder = clear_world(), clear_builder()
    builder.save(tmp_path / "features.safetensors")
    settings = config(tmp_path / "data", context=6, features=str(tmp_path / "features.safetensors"))
    visits = list(world.visits(40, "2009-05-03", days=1 / 24))

    async def work(service: Service) -> None:
        for key in visits[0].pool:
            article = world.newsroom.article(key)
            profile = {
                "url_categories": list(article.url_categories),
                "editor_categories": list(article.editor_categories),
            }
            await service.put_article("front", key, ArticleRequest(profile=profile))
            kept = service.state.pools["front"].articles[key].facts.features
            assert kept is not None
            (trained,) = builder.articles([profile])
            assert list(kept) == trained.tolist()  # or a trained article would be refused
            await service.put_article(
                "front", key, ArticleRequest(features=tuple(trained.tolist()))
            )
        clicks = 0
        for visit in visits:
            made = await service.decide(DecideRequest(user=visit.profile))
            clicks += int(visit.payoff(made.article))
            if visit.payoff(made.article):
                await service.feedback(FeedbackRequest(decision=made.decision, payoff=1))
        tally = service.state.pools["front"].tally
        assert sum(map(sum, tally.shows)) == len(visits)
        assert sum(map(sum, tally.payoff)) == clicks
        wrong: list[dict[str, object]] = [
            {"shoe_size": "44"},
            {"gender": 7},
            {"behaviours": "golf"},
        ]
        for odd in wrong:
            with pytest.raises(ApiError) as caught:
                await service.decide(DecideRequest(user=odd))
            assert (caught.value.status, caught.value.reason) == (422, "bad_profile")

        await service.decide(DecideRequest(user={"gender": "?", "behaviours": ["?", "!"]}))
        keeper = Keeper(service, Snapshots(tmp_path / "snapshots"))
        page = (await Metrics(service, keeper, RequestCounts()).page()).decode()
        assert 'topstory_unknown_categories_total{field="behaviours"} 2.0' in page
        assert 'topstory_unknown_categories_total{field="gender"} 1.0' in page

    run(settings, work)


def test_numbers_booleans_dates_text_and_lists_are_taken_as_they_are(tmp_path: Path) -> None:
    log = mixed_log()
    builder = ts.FeatureBuilder(method="direct").fit(log)
    builder.save(tmp_path / "features.safetensors")
    policy = ts.train(ts.policy("linucb-hybrid"), builder.apply(log)).policy
    policy.save(tmp_path / "policy.safetensors")
    settings = config(
        tmp_path / "data",
        context=builder.user_side_.membership_map.dimension,
        features=str(tmp_path / "features.safetensors"),
        policy={"start": str(tmp_path / "policy.safetensors")},
    )
    assert log.article_profiles is not None
    described = dict(zip(log.article_ids, log.article_profiles.to_pylist(), strict=True))
    user = msgspec.json.decode(
        b'{"is_subscriber": false, "age": 31, "joined": "2008-03-01T09:30:00Z", "country": null, '
        b'"likes": ["a", "b"], "about": "rain and wind", "device": "phone"}'
    )

    async def work(service: Service) -> None:
        for key, profile in described.items():  # those that were trained
            await service.put_article("front", key, ArticleRequest(profile=profile))
        made = await service.decide(DecideRequest(user=user))
        shown = service.state.pools["front"].policy.estimates(builder.user(user), list(described))
        assert made.article in described
        assert np.isfinite(shown).all()
        for odd in ({"is_subscriber": "no"}, {"age": "31"}, {"joined": "soon"}, {"about": 7}):
            with pytest.raises(ApiError) as caught:
                await service.decide(DecideRequest(user=odd))
            assert (caught.value.status, caught.value.reason) == (422, "bad_profile")
            assert next(iter(odd)) in caught.value.message

    run(settings, work)


def test_a_worker_that_is_started_again_knows_the_features_of_the_first(tmp_path: Path) -> None:
    path, builder = tmp_path / "features.safetensors", ts.FeatureBuilder(method="direct")
    builder.fit(little_log()).save(path)
    context = builder.user_side_.membership_map.dimension
    with Served(tmp_path, context=context, features=str(path), workers=2) as served:
        with ts.Client(served.url, served.key, timeout=60) as client:
            client.put_article("front", "only", ArticleRequest())
        path.write_bytes(b"another one")
        first = served.workers()
        for each in first:
            each.kill()
        eventually(lambda: len({*served.workers()} - {*first}) == 2, 60)
        with ts.Client(served.url, served.key, timeout=60, retries=20) as client:
            assert client.decide({"gender": "m"}).article == "only"
