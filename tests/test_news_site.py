"""From an untidy export to a live policy, by commands alone (docs/guides/your-data.md)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from examples.news_site.export import write_export
from tests.cli.running import answer, run
from tests.serving.making import config
from tests.serving.making import run as serve

import topstory as ts
from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.service.service import Service

MAPPING = Path("examples/news_site/mapping.toml")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    write_export(folder, 6_000)
    shutil.copy(MAPPING, folder)
    return folder


def test_an_export_becomes_a_policy_without_a_line_of_code(site: Path) -> None:
    report = answer(
        "import", "csv", site / "impressions.csv", site / "log", "--map", site / "mapping.toml"
    )
    assert report["rows"] == 6_030  # some came twice
    assert 5_900 < report["events"] < 6_000
    assert 20 < sum(report["left_out"].values()) <= 30
    found = answer("inspect", site / "log")
    assert found["fit"]
    assert found["visitors"] > 100

    run("split", site / "log", site / "past", site / "recent", "--at", "0.7")
    run("features", "fit", site / "past", site / "features.safetensors", "--method", "direct")
    for part in ("past", "recent"):
        model, out = site / "features.safetensors", site / f"{part}-x"
        run("features", "apply", site / part, model, out)
    trained = answer(
        *("train", site / "past", "--features", site / "features.safetensors"),
        *("--policy", "linucb-hybrid", "--alpha", 0.3, "--out", site / "policy.safetensors"),
    )
    assert trained["events"] == len(ts.EventLog.read(site / "past"))
    lifted = answer(
        *("replay", site / "recent-x", "--policy", "linucb-hybrid", "--baseline", "logged"),
        *("--alpha", 0.3, "--save", site / "saved.safetensors"),
    )
    assert lifted["policies"][0]["deployment_lift"]["value"] is not None
    policy = ts.Policy.load(site / "policy.safetensors")
    assert policy.feature_model == ts.FeatureBuilder.load(site / "features.safetensors").identity


def test_the_trained_policy_goes_live_and_takes_raw_profiles(site: Path) -> None:
    """The service starts from the trained policy, knows its articles, and takes another one."""
    trained = site / "policy.safetensors"
    builder = ts.FeatureBuilder.load(site / "features.safetensors")
    log = ts.EventLog.read(site / "recent")
    assert log.profiles is not None
    assert log.article_profiles is not None
    described = dict(zip(log.article_ids, log.article_profiles.to_pylist(), strict=True))
    pool = log[len(log) - 1].pool
    profiles = [
        {name: value for name, value in row.items() if value is not None}
        for row in log.profiles.slice(0, 20).to_pylist()
    ]
    settings = {
        "context": builder.apply(log[:10]).dimension,
        "features": str(site / "features.safetensors"),
        "policy": {"start": str(trained)},
    }

    async def work(service: Service) -> None:
        for key in pool:
            await service.put_article("front", key, ArticleRequest(profile=described[key]))
        live = service.state.pools["front"].policy
        policy = ts.Policy.load(trained)
        for profile in profiles:
            user = builder.user(profile)
            expected = policy.estimates(user, list(pool))
            assert live.estimates(user, list(pool)).tolist() == expected.tolist()  # to the bit
        for profile in profiles:
            made = await service.decide(DecideRequest(user=profile))
            assert made.article in pool
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=1))

    serve(config(site / "data", **settings), work)
