"""`topstory train` writes what `ts.train` trains, and prints how good it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import answer, run, words
from tests.policies.comparing import same_model

import topstory as ts


def test_the_file_and_the_json_are_those_of_the_python_api(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "policy.safetensors"
    report = answer(
        *("train", logs / "uniform", "--policy", "linucb-hybrid", "--alpha", 0.4, "--ridge", 3),
        *("--held-out", 0.25, "--out", out),
    )
    log = ts.EventLog.read(logs / "uniform")
    found = ts.train(ts.policy("linucb-hybrid", alpha=0.4, ridge=3.0), log, held_out=0.25)
    assert same_model(ts.Policy.load(out), found.policy)
    assert (report["format"], report["version"]) == ("topstory-train", 1)
    assert (report["log"], report["out"]) == (str(logs / "uniform"), str(out))
    assert report["parameters"] == {"alpha": 0.4, "ridge": 3.0, "shared_ridge": 1.0}
    assert (report["events"], report["articles"]) == (len(log), len(log.article_ids))
    assert report["refitted"]
    held_out = found.held_out
    assert held_out is not None
    assert report["held_out"]["events"] == len(log) // 4
    for name, bucket in held_out.buckets.items():
        printed = report["held_out"][name]
        assert (printed["trials"], printed["ctr"]) == (bucket.trials, bucket.ctr)
        assert printed["interval"] == list(bucket.interval)
        assert printed["relative_ctr"] == bucket.relative_ctr


def test_the_table_says_what_was_held_out_and_what_was_written(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.safetensors"
    printed = words(run("train", logs / "uniform", "--policy", "ucb", "--out", out).stdout)
    assert "ucb (alpha 0.3) on 2,000 events that it had not seen" in printed
    assert f"Wrote {words(str(out))}: it knows" in printed
    assert "learned from 20,000 events" in printed
    assert "those held out included" in printed


def test_events_are_weighted_when_asked(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.safetensors"
    plain = ("train", logs / "recorded", "--policy", "ucb", "--out", out)
    report = answer(*plain, "--weights", "propensity")
    log = ts.EventLog.read(logs / "recorded")
    found = ts.train(ts.policy("ucb"), log, weights="propensity")
    assert same_model(ts.Policy.load(out), found.policy)
    assert report["effective_events"] < len(log) == report["events"]
    warned = run(*plain).stderr
    assert "weight its events by propensity (--weights propensity" in words(warned)


def test_warm_policies_fit_their_offsets_first(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.safetensors"
    command = ("train", logs / "uniform", "--policy", "ucb-warm", "--out", out)
    assert answer(*command)["events"] == 18_000  # the first tenth is for the offsets
    assert answer(*command, "--warm-from", logs / "explored")["events"] == 20_000
    assert ts.Policy.load(out).model.name == "warm"


def test_raw_profiles_get_their_contexts_from_a_feature_model(tmp_path: Path) -> None:
    world = ts.TodayModule(seed=0, users=500)
    world.random_log(20_000, raw=True).write(tmp_path / "raw")
    run("features", "fit", tmp_path / "raw", tmp_path / "model", "--support", 0.01)
    out = tmp_path / "p.safetensors"
    command = ("train", tmp_path / "raw", "--policy", "linucb-hybrid", "--out", out)
    answer(*command, "--features", tmp_path / "model")
    builder = ts.FeatureBuilder.load(tmp_path / "model")
    log = builder.apply(ts.EventLog.read(tmp_path / "raw"))
    found = ts.train(ts.policy("linucb-hybrid"), log).policy
    assert same_model(ts.Policy.load(out), found)
    x = builder.user({})
    assert np.isfinite(ts.Policy.load(out).estimates(x, list(log.article_ids))).all()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--policy", "random"), 2, "train one policy that learns: egreedy"),
        (("--policy", "ucb,egreedy"), 2, "train one policy that learns: egreedy"),
        (("--policy", "ucb", "--epsilon", 0.1), 2, "--epsilon: it does not apply to ucb"),
        (("--policy", "ucb", "--warm-from", "log"), 2, "--warm-from: it does not apply to ucb"),
        (("--policy", "ucb", "--weights", "x"), 1, "weights must be 'none' or 'propensity'"),
        (("--policy", "ucb", "--held-out", 1), 1, "held_out must be a share"),
        (("--policy", "ucb", "--features", "nowhere"), 1, "No such file or directory: nowhere"),
    ],
)
def test_errors_say_what_is_wrong(
    logs: Path, tmp_path: Path, arguments: tuple[object, ...], status: int, message: str
) -> None:
    out = tmp_path / "p.safetensors"
    result = run("train", logs / "uniform", "--out", out, *arguments, status=status)
    assert message in words(result.stderr)
    assert not out.exists()


def test_without_a_policy_it_starts_from_a_prior_and_with_a_ridge_as_in_the_paper(
    logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "p.safetensors"
    report = answer("train", logs / "uniform", "--warm-from", logs / "explored", "--out", out)
    assert report["policy"] == "linucb-hybrid-prior"
    assert ts.Policy.load(out).model.prior is not None
    report = answer("train", logs / "uniform", "--ridge", "paper", "--out", out)
    assert (report["policy"], report["parameters"]["ridge"]) == ("linucb-hybrid", 1.0)
    report = answer("train", logs / "uniform", "--ridge", "auto", "--out", out)
    assert (report["policy"], report["parameters"]["ridge"]) == ("linucb-hybrid", "auto")
    assert isinstance(ts.Policy.load(out).model, ts.HybridLinear)


def test_a_ridge_is_a_number_or_a_word(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.safetensors"
    refused = run("train", logs / "uniform", "--ridge", "large", "--out", out, status=2)
    assert "expected a number or auto or paper, got 'large'" in words(refused.stderr)
    beside = ("--policy", "linucb-hybrid-prior", "--ridge", "paper", "--warm-from")
    refused = run("train", logs / "uniform", *beside, logs / "explored", "--out", out, status=1)
    assert "starts as the paper does, without a prior; give either it, or" in words(refused.stderr)
