"""`topstory promote`: for a stopped service or a running one, with its feature model or without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import run as command
from tests.features.worlds import little_builder
from tests.serving.making import Made, add_articles, config, folded, run, visits
from tests.serving.processes import Served, as_toml
from tests.serving.upkeep.test_promotion import file_of, trained

import topstory as ts
from topstory.serving.api.messages import ArticleRequest, DecideRequest
from topstory.serving.config.loading import BadConfig
from topstory.serving.service.service import Service


async def traffic(service: Service) -> None:
    await add_articles(service, 3)
    await visits(service, 30)


def said(*arguments: object, status: int = 0) -> str:
    return " ".join(command("promote", *arguments, status=status).output.split())


def test_a_stopped_service_gets_a_policy_and_gives_it_back(tmp_path: Path) -> None:
    settings = config(tmp_path / "data")
    run(settings, traffic)
    path, toml = tmp_path / "policy.safetensors", tmp_path / "topstory.toml"
    path.write_bytes(file_of(trained(), tmp_path))
    toml.write_text(as_toml({"data": settings.data, "context": 4, "bucket_secret": "same"}))
    tried = said(toml, path, "--dry-run")
    assert "On the last 30 decisions both would show the same article in" in tried
    assert "The new policy would earn" in tried
    assert "Nothing was changed" in tried
    report = json.loads(command("promote", toml, path, "--json").output)
    made = Made(settings)
    made.crash()
    assert made.service.state.pools["front"].policy.model.name == "disjoint"
    assert made.service.state.pools["front"].promoted == report["record"]
    assert report["comparison"]["decisions"] == 30
    assert "has its new policy from record" in said(toml, "--revert")
    assert folded(settings).pools["front"].policy.model.name == "hybrid"
    assert "there is no pool 'side'" in said(toml, path, "--pool", "side", status=1)
    path.write_bytes(b"nothing")
    assert "not a safetensors file" in said(toml, path, status=1)
    said(toml, status=2)
    said(toml, path, "--revert", status=2)


def test_a_running_service_is_asked_by_its_own_api(tmp_path: Path) -> None:
    path, key = tmp_path / "policy.safetensors", tmp_path / "key"
    path.write_bytes(file_of(trained(), tmp_path))
    with Served(tmp_path, policy={"name": "linucb-disjoint"}) as served:
        key.write_text(served.key)
        with ts.Client(served.url, served.key, timeout=60) as client:
            client.put_article("front", "article-1", ArticleRequest())
        assert "another process serves from this folder" in said(served.config, path, status=1)
        served.config.write_text(as_toml({**served.settings, "port": served.address[1]}))
        live = (served.config, path, "--key-file", key)
        key.write_text(served.reader)
        assert "the service refused it: this key does not have the role 'promote'" in said(
            *live, status=1
        )
        key.write_text(served.key)
        assert "There are no decisions to compare" in said(*live, "--dry-run")
        assert "has its new policy from record" in said(*live, "--note", "from May")
        with ts.Client(served.url, served.key) as client:
            (change,) = client.call("policy", pool="front").changes
            assert (change.note, change.key) == ("from May", "all")
        assert "has its new policy" in said(served.config, "--key-file", key, "--revert")


def test_features_change_only_together_with_a_policy(tmp_path: Path) -> None:
    """And a start with another feature model is refused, with both names."""
    old, new = little_builder(), little_builder(seed=2)
    assert old.identity != new.identity
    for name, builder in (("old", old), ("new", new)):
        builder.save(tmp_path / f"{name}.safetensors")
    profile = {"tags": ["on tea"]}

    def settings(name: str) -> Any:
        return config(tmp_path / "data", context=6, features=str(tmp_path / f"{name}.safetensors"))

    async def work(service: Service) -> None:
        await service.put_article("front", "tea", ArticleRequest(profile=profile))
        await service.decide(DecideRequest(user={"likes": ["tea"]}))
        assert service.state.pools["front"].policy.feature_model in (old.identity, new.identity)

    run(settings("old"), work)
    with pytest.raises(BadConfig, match=rf"^features: .*{old.identity}.*{new.identity}"):
        Made(settings("new"))
    policy = ts.policy("linucb-hybrid")
    policy.use_feature_model(new.identity, "the test")
    policy.add_article("tea", new.article(profile))
    policy.learn(new.user({"likes": ["tea"]}), "tea", 1.0)
    path, toml = tmp_path / "policy.safetensors", tmp_path / "topstory.toml"
    policy.save(path)
    written = {"data": str(tmp_path / "data"), "context": 6, "bucket_secret": "same"}
    toml.write_text(as_toml({**written, "features": str(tmp_path / "old.safetensors")}))
    refused = said(toml, path, status=1)
    assert old.identity in refused
    assert new.identity in refused
    done = said(toml, path, "--features", tmp_path / "new.safetensors")
    assert "Set `features`" in done
    with pytest.raises(BadConfig, match=rf"^features: .*{new.identity}.*{old.identity}"):
        Made(settings("old"))
    run(settings("new"), work)
    state = folded(settings("new"))
    features = state.pools["front"].articles["tea"].facts.features
    assert features == tuple(new.article(profile).tolist())
    assert state.config["feature_model"] == new.identity
    toml.write_text(as_toml({**written, "features": str(tmp_path / "new.safetensors")}))
    back = ("--revert", "--features", tmp_path / "old.safetensors")
    assert "stop it, and leave out --key-file" in said(*(toml, *back, "--key-file", path), status=2)
    refused = said(toml, "--revert", status=1)  # the policy before goes with the model before
    assert old.identity in refused
    assert new.identity in refused
    assert "Nothing was changed in pool 'front'" in said(toml, *back, "--dry-run")
    said(toml, *back)
    run(settings("old"), work)
    state = folded(settings("old"))
    features = state.pools["front"].articles["tea"].facts.features
    assert features == tuple(old.article(profile).tolist())


def test_the_features_of_several_pools_change_at_once_or_not_at_all(tmp_path: Path) -> None:
    old, new = little_builder(), little_builder(seed=2)
    for name, builder in (("old", old), ("new", new)):
        builder.save(tmp_path / f"{name}.safetensors")
    profile = {"tags": ["on tea"]}
    pools: dict[str, Any] = {"front": {}, "side": {}}
    given: dict[str, Any] = {
        "context": 6,
        "pools": pools,
        "data": str(tmp_path / "data"),
        "bucket_secret": "same",
    }
    given["features"] = str(tmp_path / "old.safetensors")

    async def work(service: Service) -> None:
        for pool in pools:
            await service.put_article(pool, "tea", ArticleRequest(profile=profile))

    run(config(tmp_path / "data", **{k: v for k, v in given.items() if k != "data"}), work)
    policy = ts.policy("linucb-hybrid")
    policy.use_feature_model(new.identity, "the test")
    policy.add_article("tea", new.article(profile))
    path, toml = tmp_path / "policy.safetensors", tmp_path / "topstory.toml"
    policy.save(path)
    toml.write_text(as_toml(given))
    change = (toml, path, "--features", tmp_path / "new.safetensors", "--pool", "front")
    refused = said(*change, status=1)
    assert "change all of them at once (--pool front --pool side)" in refused
    one, other = json.loads(command("promote", *change, "--pool", "side", "--json").output)
    assert (one["pool"], other["pool"]) == ("front", "side")
    assert other["record"] == one["record"] + 1
    after = {**given, "features": str(tmp_path / "new.safetensors")}
    state = folded(config(tmp_path / "data", **{k: v for k, v in after.items() if k != "data"}))
    for pool in state.pools.values():
        assert pool.articles["tea"].facts.features == tuple(new.article(profile).tolist())
        assert pool.policy.feature_model == new.identity


def test_a_policy_to_start_from_must_be_made_with_the_services_features(tmp_path: Path) -> None:
    builder = little_builder()
    builder.save(tmp_path / "features.safetensors")
    policy = ts.policy("linucb-disjoint")
    policy.use_feature_model("0" * 16, "the test")
    policy.save(tmp_path / "policy.safetensors")
    settings = config(
        tmp_path / "data",
        context=6,
        features=str(tmp_path / "features.safetensors"),
        policy={"start": str(tmp_path / "policy.safetensors")},
    )
    with pytest.raises(BadConfig, match=rf"^policy.start: .*{'0' * 16}.*{builder.identity}"):
        Made(settings)


def test_a_key_beside_start_that_contradicts_it_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    trained().save(path)

    def opened(**policy: Any) -> None:
        Made(config(tmp_path / "data", policy={"start": str(path), **policy})).crash()

    for begun in (False, True):  # the same before the pool is open, and after
        with pytest.raises(BadConfig, match=r"^policy\.ridge: 2"):
            opened(ridge=2.0)
        with pytest.raises(BadConfig, match=r"^policy\.name: ucb"):
            opened(name="ucb")
        if not begun:
            opened(name="linucb-disjoint", ridge=1.0, alpha=0.5)
    trained(seed=9).save(path)
    with pytest.raises(BadConfig, match=r"^policy\.start: pool 'front' was not begun with"):
        opened()
    path.unlink()  # it is read once, and may be deleted
    opened()
