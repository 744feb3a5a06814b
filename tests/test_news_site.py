"""From an untidy export to a live policy, by commands alone (docs/guides/your-data.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from examples.news_site.export import write_export
from tests.cli.running import answer, run
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.api.messages import ArticleRequest

MAPPING = Path("examples/news_site/mapping.toml")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export, and the mapping that the command suggests for it: nobody edits it."""
    folder = tmp_path_factory.mktemp("site")
    export, articles = write_export(folder, 6_000)
    suggested = run("import", "csv", export, "--suggest", "-o", f"articles={articles}").stdout
    (folder / "mapping.toml").write_text(suggested)
    return folder


@pytest.fixture(scope="module")
def trained(site: Path) -> Path:
    """The folder, with logs, a feature model and two policies."""
    report = answer(
        "import", "csv", site / "impressions.csv", site / "log", "--map", site / "mapping.toml"
    )
    assert report["rows"] == 6_030  # some came twice
    assert 5_900 < report["events"] < 6_000
    assert 20 < sum(report["left_out"].values()) <= 30
    model = site / "features.safetensors"
    run("split", site / "log", site / "past", site / "recent", "--at", "0.7")
    run("features", "fit", site / "past", model, "--method", "direct")
    for alpha in (0.3, 0.1):
        made = answer(
            *("train", site / "past", "--features", model, "--policy", "linucb-hybrid"),
            *("--alpha", alpha, "--out", site / f"policy-{alpha}.safetensors"),
        )
        assert made["events"] == len(ts.EventLog.read(site / "past"))
    return site


def test_the_suggested_mapping_gives_the_log_of_the_one_that_a_person_wrote(trained: Path) -> None:
    ours = trained / "ours.toml"
    ours.write_text(MAPPING.read_text())
    run("import", "csv", trained / "impressions.csv", trained / "other", "--map", ours)
    one, other = (ts.EventLog.read(trained / name) for name in ("log", "other"))
    assert one.payoff.tolist() == other.payoff.tolist()
    assert one.shown.tolist() == other.shown.tolist()
    assert one.profiles is not None
    assert other.profiles is not None
    assert one.profiles.equals(other.profiles)


def test_inspect_says_what_the_export_is_fit_for(trained: Path) -> None:
    found = answer("inspect", trained / "log")
    assert found["fit"]
    assert found["visitors"] > 100
    kinds = {each["name"]: each["kind"] for each in found["fields"]}
    assert kinds["is_subscriber"] == "boolean"
    assert kinds["affinity_sports"] == "number"


def test_the_recent_days_say_what_a_policy_is_worth_beside_today(trained: Path) -> None:
    model, recent = trained / "features.safetensors", trained / "recent-x"
    run("features", "apply", trained / "recent", model, recent)
    saved = trained / "saved.safetensors"
    lifted = answer(
        *("replay", recent, "--policy", "linucb-hybrid", "--baseline", "logged"),
        *("--alpha", 0.3, "--save", saved),
    )
    assert lifted["policies"][0]["deployment_lift"]["value"] is not None
    judged = answer("evaluate", recent, "--policy", trained / "policy-0.3.safetensors")
    assert judged["values"][0]["value"]["value"] > judged["logged"]["value"]
    identity = ts.FeatureBuilder.load(model).identity
    for name in ("saved", "policy-0.3"):
        assert ts.Policy.load(trained / f"{name}.safetensors").feature_model == identity


def test_the_trained_policy_goes_live_is_promoted_over_and_comes_back(trained: Path) -> None:
    """A process of its own, asked over HTTP with raw profiles as the export has them."""
    builder = ts.FeatureBuilder.load(trained / "features.safetensors")
    log = ts.EventLog.read(trained / "recent")
    assert log.profiles is not None
    assert log.article_profiles is not None
    described = dict(zip(log.article_ids, log.article_profiles.to_pylist(), strict=True))
    pool = log[len(log) - 1].pool
    profiles = [_present(row) for row in log.profiles.slice(0, 20).to_pylist()]
    start, other = (trained / f"policy-{alpha}.safetensors" for alpha in (0.3, 0.1))
    served = Served(
        trained / "service",
        context=len(builder.user({})),
        features=str(trained / "features.safetensors"),
        policy={"start": str(start)},
        traffic={"learning": 0.5, "deployment": 0.3, "uniform": 0.2},
        limits={"context_norm": 10.0},
    )
    (trained / "key").write_text(served.key)
    command = ("promote", served.config, "--key-file", trained / "key")
    with served, ts.Client(served.url, served.key, timeout=60) as client:
        served.config.write_text(
            served.config.read_text().replace("port = 0", f"port = {served.address[1]}")
        )
        for key in pool:
            client.put_article("front", key, ArticleRequest(profile=_present(described[key])))
        before = client.call("policy", pool="front")
        assert before.policy.feature_model == builder.identity
        for profile in profiles:
            made = client.decide(profile)
            assert made.article in pool
            client.feedback(made.decision, payoff=1)
        compared = answer(*command, other, "--dry-run")
        assert compared["comparison"]["decisions"] == 20
        assert client.call("policy", pool="front") == before
        record = answer(*command, other)["record"]
        now = client.call("policy", pool="front")
        assert (now.since, now.policy.parameters["alpha"]) == (record, 0.1)
        assert client.decide(profiles[0]).article in pool
        assert answer(*command, "--revert")["record"] > record
        assert client.call("policy", pool="front").policy.parameters["alpha"] == 0.3


def _present(profile: dict[str, Any]) -> dict[str, Any]:
    """Without what is missing; dates as an export writes them."""
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else value
        for name, value in profile.items()
        if value is not None
    }
