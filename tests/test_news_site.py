"""From an untidy export to a live policy, by commands alone (docs/guides/your-data.md)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from examples.news_site.export import write_export
from tests.cli.running import answer, run
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.api.messages import ArticleRequest
from topstory.serving.client.placing import as_profile

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
    events = ("--event", "hour_of_day", "--event", "seen_before", "--event-in-f", "age_hours")
    for fitted, part in ((model, "past"), (site / "other.safetensors", "recent")):
        run("features", "fit", site / part, fitted, "--method", "pca", "--components", 5, *events)
    for alpha in (0.3, 0.1):
        made = answer(*_training(site, model), *("--alpha", alpha, "--out", _policy(site, alpha)))
        assert made["events"] == len(ts.EventLog.read(site / "past"))
    run(*_training(site, site / "other.safetensors"), "--out", _policy(site, "other"))
    run("features", "apply", site / "recent", model, site / "recent-x")
    return site


def _training(site: Path, model: Path) -> tuple[object, ...]:
    return "train", site / "past", "--features", model, "--policy", "linucb-hybrid"


def _policy(site: Path, name: object) -> Path:
    return site / f"policy-{name}.safetensors"


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


def test_candidates_may_be_derived_and_rows_may_come_from_a_query(trained: Path) -> None:
    """The articles file tells the pools that the export lists."""
    derived = trained / "derived.toml"
    lines = MAPPING.read_text().splitlines(keepends=True)
    derived.write_text("".join(line for line in lines if not line.startswith("candidates")))
    command = ("import", "csv", trained / "impressions.csv")
    run(*command, trained / "derived", "--map", derived)
    listed, found = (ts.EventLog.read(trained / name) for name in ("log", "derived"))
    assert found.shown.tolist() == listed.shown.tolist()
    for one, other in ((0, 0), (1_000, 1_000), (-1, -1)):
        assert set(found[one].pool) == set(listed[other].pool)
    phones = "select * from events where trim(device) = 'phone'"
    run(*command, trained / "phones", "--map", trained / "mapping.toml", "--query", phones)
    assert listed.profiles is not None
    assert listed.visitors is not None
    device = np.array(listed.profiles.column("device").to_pylist())[listed.visitors.number]
    assert len(ts.EventLog.read(trained / "phones")) == (device == "phone").sum()


def test_inspect_says_what_the_export_is_fit_for(trained: Path) -> None:
    found = answer("inspect", trained / "log")
    assert found["fit"]
    assert found["visitors"] > 100
    kinds = {each["name"]: each["kind"] for each in found["fields"]}
    assert kinds["is_subscriber"] == "boolean"
    assert kinds["affinity_sports"] == "number"


def test_the_recent_days_say_what_a_policy_is_worth_beside_today(trained: Path) -> None:
    model, recent = trained / "features.safetensors", trained / "recent-x"
    saved, tuned = trained / "saved.safetensors", trained / "tuned.safetensors"
    lifted = answer(
        *("replay", recent, "--policy", "linucb-hybrid", "--baseline", "logged"),
        *("--alpha", 0.3, "--save", saved),
    )
    assert lifted["policies"][0]["deployment_lift"]["value"] is not None
    run("tune", recent, "--policy", "linucb-hybrid", "--repeats", 1, "--save", tuned)
    judged = answer("evaluate", recent, "--policy", _policy(trained, 0.3))
    assert judged["values"][0]["value"]["value"] > judged["logged"]["value"]
    identity = ts.FeatureBuilder.load(model).identity
    for path in (saved, tuned, _policy(trained, 0.3)):
        assert ts.Policy.load(path).feature_model == identity


def test_a_policy_of_another_feature_model_is_refused_with_both_names(trained: Path) -> None:
    """By evaluation, by replay and by a service; a promotion is below."""
    other = _policy(trained, "other")
    config = trained / "mismatch.toml"
    model = trained / "features.safetensors"
    config.write_text(
        f'data = "{trained / "nobody"}"\nfeatures = "{model}"\n'
        f"context = {len(ts.EventLog.read(trained / 'recent-x').contexts(0)[0])}\n"
        f'[policy]\nstart = "{other}"\n'
    )
    errors = [
        run("evaluate", trained / "recent-x", "--policy", other, status=1).output,
        run("serve", "--config", config, "--port", 0, status=1).output,
    ]
    with pytest.raises(ValueError, match="made with feature model") as caught:
        ts.replay(ts.Policy.load(other), ts.EventLog.read(trained / "recent-x"))
    for error in (*errors, str(caught.value)):
        for path in (model, trained / "other.safetensors"):
            assert ts.FeatureBuilder.load(path).identity in error


def test_the_trained_policy_goes_live_is_promoted_over_and_comes_back(trained: Path) -> None:
    """A process of its own, asked over HTTP with raw profiles as the log has them."""
    builder = ts.FeatureBuilder.load(trained / "features.safetensors")
    log = ts.EventLog.read(trained / "recent")
    assert log.profiles is not None
    assert log.article_profiles is not None
    described = dict(zip(log.article_ids, log.article_profiles.to_pylist(), strict=True))
    pool = log[len(log) - 1].pool
    profiles = [as_profile(row) for row in log.profiles.slice(0, 20).to_pylist()]
    start, other = (_policy(trained, alpha) for alpha in (0.3, 0.1))
    served = Served(
        trained / "service",
        context=len(ts.EventLog.read(trained / "recent-x").contexts(0)[0]),
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
        run("place", served.config, trained / "recent", "--key-file", trained / "key")
        assert {view.id for view in client.articles("front")} == set(pool)
        before = client.call("policy", pool="front")
        assert before.policy.feature_model == builder.identity
        for i, profile in enumerate(profiles):
            made = client.decide(profile, visitor=f"v{i % 7}")
            assert made.article in pool
            client.feedback(made.decision, payoff=1)
        edited = as_profile(described[pool[0]]) | {"tags": ["football", "europe"]}
        was = client.article("front", pool[0]).features
        now = client.put_article("front", pool[0], ArticleRequest(profile=edited))
        assert (now.features != was, now.shows) == (True, 0)
        refused = run(*command, _policy(trained, "other"), status=1).output
        assert builder.identity in refused
        assert str(ts.Policy.load(_policy(trained, "other")).feature_model) in refused
        compared = answer(*command, other, "--dry-run")
        assert compared["comparison"]["decisions"] == 20
        assert client.call("policy", pool="front") == before
        record = answer(*command, other)["record"]
        now = client.call("policy", pool="front")
        assert (now.since, now.policy.parameters["alpha"]) == (record, 0.1)
        assert client.decide(profiles[0]).article in pool
        assert answer(*command, "--revert")["record"] > record
        assert client.call("policy", pool="front").policy.parameters["alpha"] == 0.3
    # The loop closes: what the service wrote is a log of the same feature model.
    run("export-journal", served.data, trained / "journal", "--unfinished")
    journal = ts.EventLog.read(trained / "journal")
    assert (len(journal), journal.feature_model) == (21, builder.identity)
    assert answer("evaluate", trained / "journal", "--policy", other)["events"] == 21
