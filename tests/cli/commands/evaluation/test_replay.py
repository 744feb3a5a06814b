"""`topstory replay` prints what `ts.compare` and `ts.replay` find."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.running import answer, run, words

import topstory as ts
from topstory.policies.registry import PAPER, REGISTRY


def same_bucket(printed: dict[str, Any], bucket: Any) -> bool:
    return bool(
        printed["trials"] == bucket.trials
        and printed["payoff"] == bucket.payoff
        and printed["ctr"] == bucket.ctr
        and printed["interval"] == list(bucket.interval)
        and printed["relative_ctr"] == bucket.relative_ctr
        and printed["relative_interval"] == list(bucket.relative_interval)
        and printed["weighted_ctr"] == bucket.weighted_ctr
        and printed["weighted_interval"] == list(bucket.weighted_interval)
        and printed["weighted_relative_ctr"] == bucket.weighted_relative_ctr
    )


def test_json_equals_the_python_api(logs: Path) -> None:
    report = answer(
        *("replay", logs / "uniform", "--policy", "linucb-hybrid", "--alpha", 0.4),
        *("--ridge", 3, "--shared-ridge", 2, "--size", 0.5, "--seed", 7, "--repeats", 1),
    )
    log = ts.EventLog.read(logs / "uniform")
    policy = ts.policy("linucb-hybrid", alpha=0.4, ridge=3.0, shared_ridge=2.0, seed=7)
    result = ts.replay(policy, log, size=0.5, seed=7)
    (found,) = report["policies"]
    assert same_bucket(found["deployment"], result.deployment)
    assert same_bucket(found["learning"], result.learning)
    assert found["parameters"] == {"alpha": 0.4, "ridge": 3.0, "shared_ridge": 2.0}
    assert found["paper"] == "linucb (hybrid)"
    assert found["deployment_lift"] is None
    assert (report["format"], report["version"]) == ("topstory-replay", 1)
    assert report["random_ctr"] == result.random_ctr
    assert report["events"] == report["kept"] == len(log)
    assert (report["size"], report["seed"], report["seeds"]) == (0.5, 7, 1)
    assert report["intervals"] == "clicks, visitors and hours of this log, on one learning path"
    assert report["uniformity"]["p_value"] == log.uniformity().p_value
    assert report["lost"] is report["warm"] is None
    assert report["warnings"] == []


@pytest.mark.parametrize("log", ["uniform", "recorded"])
def test_every_number_is_that_of_compare(logs: Path, log: str) -> None:
    report = answer("replay", logs / log, "--policy", "all", "--alpha", 0.2, "--seed", 3)
    found = ts.compare("all", ts.EventLog.read(logs / log), alpha=0.2, seed=3)
    assert report["events"] == len(found.log)
    assert list(found.results) == [policy["policy"] for policy in report["policies"]]
    rows = {(row["policy"], row["bucket"]): row for row in found.table().to_pylist()}
    for policy in report["policies"]:
        for bucket in ("deployment", "learning"):
            row, printed = rows[policy["policy"], bucket], policy[bucket]
            assert same_bucket(printed, found.bucket(policy["policy"], bucket))
            assert [row[name] for name in ("trials", "payoff", "ctr", "relative_ctr")] == [
                printed[name] for name in ("trials", "payoff", "ctr", "relative_ctr")
            ]
            assert [row["low"], row["high"]] == printed["interval"]
            assert row["lift"] == policy[f"{bucket}_lift"]["value"]
            assert [row["lift_low"], row["lift_high"]] == policy[f"{bucket}_lift"]["interval"]


def test_the_lift_over_egreedy_is_the_library_s(logs: Path) -> None:
    report = answer("replay", logs / "uniform", "--policy", "egreedy", "--policy", "ucb")
    log = ts.EventLog.read(logs / "uniform")
    base, ucb = (
        [ts.replay(ts.policy(name, seed=seed), log, seed=seed) for seed in range(20)]
        for name in ("egreedy", "ucb")
    )
    for bucket in ("deployment", "learning"):
        lift, printed = ts.lift(ucb, base, bucket), report["policies"][1][f"{bucket}_lift"]
        assert (printed["value"], printed["interval"]) == (lift.value, list(lift.interval))
        low, high = printed["simultaneous_interval"]
        assert printed["sure"] == (printed["p_value"] <= 0.05) == (not low < 0 < high)


def test_the_total_and_the_cost_of_exploring_are_told_at_the_users_split(logs: Path) -> None:
    arguments = ("replay", logs / "uniform", "--policy", "egreedy", "--epsilon", 0.5)
    for share in (0.0, 0.3):
        (found,) = answer(*arguments, "--learning-share", share)["policies"]
        deployed, learned = found["deployment"], found["learning"]
        cost = 100_000 * share * (deployed["ctr"] - learned["ctr"])
        assert found["exploration"]["learning_share"] == share
        assert found["exploration"]["clicks_per_100000"] == pytest.approx(cost)
        total = (1 - share) * deployed["relative_ctr"] + share * learned["relative_ctr"]
        assert found["exploration"]["total_relative_ctr"] == pytest.approx(total, rel=2e-3)
    printed = words(run(*arguments, "--learning-share", 0.3).stdout)
    assert "With 30% of visits learning, both buckets together earn" in printed
    assert "clicks in 100,000 visits" in printed
    run(*arguments, "--learning-share", 2, status=2)


def test_the_highest_in_total_is_named(logs: Path) -> None:
    arguments = ("replay", logs / "uniform", "--policy", "egreedy,ucb", "--epsilon", 0.9)
    report, printed = answer(*arguments), words(run(*arguments).stdout)
    best = max(report["policies"], key=lambda each: each["exploration"]["shrunk_total"])
    assert f"Highest in total: {best['paper']}." in printed
    earned = best["deployment"]["shrunk_relative_ctr"]
    assert f"it earns {earned:.3f}" in printed


def test_what_paths_do_not_show_is_said(logs: Path) -> None:
    arguments = ("replay", logs / "uniform", "--policy", "ucb", "--alpha", 0.01)
    report = answer(*arguments, "--repeats", 3)
    assert report["too_few_seeds"]  # its articles stay
    few = words(run(*arguments, "--repeats", 3).stdout)
    assert "3 seeds cannot show how often that happens, and intervals may be too narrow" in few
    report = answer(*arguments)
    assert (report["seeds"], report["too_few_seeds"]) == (20, False)
    ends = report["policies"][0]["deployment"]["path_ends"]
    said = "The learning paths of ucb" in words(run(*arguments).stdout)
    assert said == (ends is not None)


def test_intervals_say_what_they_are_about(logs: Path) -> None:
    printed = words(run("replay", logs / "uniform", "--policy", "egreedy,ucb").stdout)
    assert (
        "over the clicks, visitors and hours of this log, and the learning path (20 seeds)"
        in printed
    )
    assert "about the hours of this log alone, which is too short" in printed
    assert "not enough days" in printed
    report = answer("replay", logs / "uniform", "--policy", "egreedy,ucb")
    assert report["days"] is None
    assert report["policies"][0]["deployment"]["next_week"] is None


def drifting(folder: Path, days: int, step: float) -> Path:
    """A log whose rate, the same for all articles, wanders from hour to hour."""
    random, hours, each = np.random.default_rng(1), 24 * days, 60
    odds = np.repeat(np.cumsum(random.normal(0, step, hours)), each)
    events = len(odds)
    ts.EventLog.from_arrays(
        np.ones((events, 1)),
        [["a", "b"]],
        np.zeros(events, int),
        random.choice(["a", "b"], events),
        random.random(events) < 1 / (1 + np.exp(1 - odds)),
        timestamps=np.arange(events) * (3600 / each),
    ).write(folder)
    return folder


def test_a_log_too_short_for_its_dependence_says_how_many_days_it_takes(tmp_path: Path) -> None:
    arguments = ("replay", drifting(tmp_path / "log", 8, 0.2), "--policy", "egreedy", "--seed", 1)
    bucket = answer(*arguments)["policies"][0]["deployment"]
    assert (bucket["too_short"], bucket["interval"]) == (True, None)
    assert bucket["ctr"] > 0
    assert bucket["days_needed"] > 8
    said = f"too short to say how sure it is: that takes a log of {bucket['days_needed']} days"
    assert said in words(run(*arguments).stdout)


def test_a_log_of_a_week_speaks_of_other_hours(tmp_path: Path) -> None:
    arguments = ("replay", drifting(tmp_path / "log", 8, 0.0), "--policy", "egreedy")
    bucket = answer(*arguments)["policies"][0]["deployment"]
    assert (bucket["too_short"], bucket["these_hours"]) == (False, False)
    assert bucket["days_needed"] is None
    assert bucket["interval"][0] < bucket["ctr"] < bucket["interval"][1]
    assert "other days differ more" in words(run(*arguments).stdout)


@pytest.mark.parametrize("log", ["uniform", "plain"])
def test_all_replays_the_twelve_in_the_registry_s_order(logs: Path, log: str) -> None:
    report = answer("replay", logs / log, "--policy", "all", "--alpha", 0.2, "--epsilon", 0.3)
    assert [policy["policy"] for policy in report["policies"]] == list(PAPER)
    for policy in report["policies"]:
        assert policy["deployment"]["trials"] > 0
        name = policy["policy"]
        assert policy["parameters"].get("alpha") == (0.2 if "ucb" in name else None)
        assert policy["parameters"].get("epsilon") == (0.3 if "egreedy" in name else None)
    assert report["warm"]["articles"] > 0


def test_the_table_of_all_has_the_paper_s_names_and_the_lift(logs: Path) -> None:
    printed = run("replay", logs / "uniform", "--policy", "all").stdout
    rows = [line.strip() for line in printed.splitlines()]
    places = [
        next(i for i, row in enumerate(rows) if row.startswith(f"{entry.paper}  "))
        for entry in (REGISTRY[name] for name in PAPER)
    ]
    assert places == sorted(places)
    assert "Lifts are over ε-greedy" in printed
    assert max(map(len, rows[: places[-1]])) <= 100  # 90, but for the pool-weighted CTR


def test_names_may_be_separated_by_commas(logs: Path) -> None:
    report = answer(
        "replay", logs / "uniform", "--policy", "ucb, random", "--policy", "egreedy,ucb"
    )
    assert [policy["policy"] for policy in report["policies"]] == ["ucb", "random", "egreedy"]


def test_delta_is_turned_into_an_alpha(logs: Path) -> None:
    report = answer("replay", logs / "uniform", "--policy", "ucb", "--delta", 0.05)
    alpha = ts.UpperConfidence.from_delta(0.05).alpha
    assert report["policies"][0]["parameters"] == {"alpha": alpha}


def test_the_table_of_one_policy_has_both_buckets(logs: Path, tmp_path: Path) -> None:
    arguments = ("--policy", "ucb", "--repeats", 1)
    printed = run("replay", logs / "uniform", *arguments, "--size", 0.25).stdout
    result = ts.replay(ts.policy("ucb"), ts.EventLog.read(logs / "uniform"), size=0.25)
    for bucket in (result.deployment, result.learning):
        low, high = bucket.interval
        assert f"{bucket.ctr:.4f}" in printed
        assert f"[{low:.4f}…{high:.4f}]" in printed
        assert f"{bucket.relative_ctr:.3f}" in printed
        assert f"{bucket.trials:,}" in printed
    assert f"random policy's CTR, {result.random_ctr:.4f}" in printed
    assert "20,000 events" in printed
    assert "25.0%" in printed
    assert "pool-weighted" in printed  # the pools of the simulated hours differ in size
    first_hour = ts.EventLog.read(logs / "uniform")
    first_hour[first_hour.pool == 0].write(tmp_path / "hour")
    assert "pool-weighted" not in run("replay", tmp_path / "hour", "--policy", "ucb").stdout


def test_pool_weighted_ctr_is_shown_where_pool_sizes_vary(logs: Path) -> None:
    printed = run("replay", logs / "plain", "--policy", "ucb", "--repeats", 1).stdout
    result = ts.replay(ts.policy("ucb"), ts.EventLog.read(logs / "plain"))
    assert f"{result.deployment.weighted_ctr:.4f}" in printed
    assert "2 to 3 articles" in printed


def test_the_share_lost_to_rejection_sampling_is_reported(logs: Path) -> None:
    result = ts.replay(ts.policy("ucb"), ts.EventLog.read(logs / "recorded"))
    assert result.lost > 0.1
    assert answer("replay", logs / "recorded", "--policy", "ucb")["lost"] == result.lost
    assert f"{result.lost:.1%}" in run("replay", logs / "recorded", "--policy", "ucb").stdout


def test_events_with_outlying_propensities_are_reported_with_a_bias_bound(tmp_path: Path) -> None:
    propensity = np.full(2000, 0.5)
    propensity[7] = 1e-6
    log = ts.EventLog.from_arrays(
        *(np.ones((2000, 1)), [["a", "b"]], [0] * 2000, ["a", "b"] * 1000, [0, 1] * 1000),
        propensity=propensity,
    )
    log.write(tmp_path / "log")
    report = answer("replay", tmp_path / "log", "--policy", "ucb")
    result = ts.replay(ts.policy("ucb"), log)
    assert report["kept"] > 1990
    assert report["capped"] == 1 / 2000
    assert result.rejection is not None
    assert report["bias_bound"] == result.rejection.bias_bound
    assert "0.05% of the events have" in run("replay", tmp_path / "log", "--policy", "ucb").stdout


def test_a_biased_log_gives_one_warning_on_standard_error(logs: Path) -> None:
    result = run("replay", logs / "biased", "--policy", "egreedy,ucb", "--json")
    assert result.stderr.count("not shown uniformly at random") == 1
    assert result.stderr.startswith("WARNING: ")
    assert "WARNING" not in result.stdout
    (message,) = answer("replay", logs / "biased", "--policy", "ucb")["warnings"]
    assert message in result.stderr


def test_without_warm_from_offsets_come_from_the_first_tenth(logs: Path) -> None:
    report = answer("replay", logs / "uniform", "--policy", "ucb-warm,ucb", "--repeats", 1)
    log = ts.EventLog.read(logs / "uniform")
    offset = ts.fit_warm_offset(log[:2_000]).table(log.articles)
    assert report["warm"] == {"source": "first tenth", "events": 2_000, "articles": 41}
    assert report["events"] == 18_000
    warm = ts.replay(ts.policy("ucb-warm", offset=offset), log[2_000:])
    assert same_bucket(report["policies"][0]["deployment"], warm.deployment)
    # Every policy of the comparison saw the same events.
    assert same_bucket(
        report["policies"][1]["learning"], ts.replay(ts.policy("ucb"), log[2_000:]).learning
    )
    printed = run("replay", logs / "uniform", "--policy", "ucb-warm").stdout
    assert "first tenth (2,000 events)" in printed
    assert "the remaining 18,000" in printed


def test_warm_from_leaves_the_whole_log_to_replay(logs: Path) -> None:
    report = answer(
        *("replay", logs / "uniform", "--policy", "egreedy-warm"),
        *("--warm-from", logs / "explored"),
    )
    assert report["events"] == 20_000
    assert report["warm"]["source"] == str(logs / "explored")
    assert report["warm"]["events"] == 5_000


def test_the_same_seed_gives_the_same_answer(logs: Path) -> None:
    def once() -> list[tuple[int, float]]:
        report = answer("replay", logs / "plain", "--policy", "all", "--seed", 3)
        return [(p["learning"]["trials"], p["deployment"]["payoff"]) for p in report["policies"]]

    assert once() == once()


def test_the_help_names_every_policy() -> None:
    printed = words(run("replay", "--help").stdout)
    for name in REGISTRY:
        assert name in printed


def test_the_lift_over_what_the_log_shows(logs: Path) -> None:
    given = ("replay", logs / "recorded", "--policy", "ucb", "--baseline", "logged")
    report = answer(*given)
    log = ts.EventLog.read(logs / "recorded")
    assert report["baseline"] == "logged"
    assert report["logged_ctr"] == pytest.approx(log.ctr, rel=1e-6)
    found = ts.compare("ucb", log, baseline="logged").lift("ucb")
    assert found is not None
    assert report["policies"][0]["deployment_lift"]["value"] == found.value
    assert f"Lift over what the log shows ({log.ctr:.4f}), in deployment: " in run(*given).stdout
    several = run("replay", logs / "plain", "--policy", "ucb", "--baseline", "random").stdout
    assert "Lifts are over random, in the deployment bucket" in several
    said = words(run(*given[:-1], "today", status=2).stderr)
    assert "no policy is called 'today'; choose logged, random" in said


def test_the_policy_that_is_recommended_can_be_saved(logs: Path, tmp_path: Path) -> None:
    """Trained on every event, not only on those that the replay retained."""
    file = tmp_path / "best.safetensors"
    given = ("replay", logs / "plain", "--policy", "random,ucb", "--alpha", 0.3, "--save", file)
    assert answer(*given)["saved"] == {
        "file": str(file), "policy": "ucb", "parameters": {"alpha": 0.3}, "events": 4_000,
        "features": None,
    }  # fmt: skip
    log = ts.EventLog.read(logs / "plain")
    taught = ts.train(ts.policy("ucb", alpha=0.3), log, held_out=0).policy
    saved = ts.Policy.load(file)
    user, pool = log[0].user, ["a", "b", "c"]
    assert saved.scores(user, pool).tolist() == taught.scores(user, pool).tolist()
    assert "Saved ucb (alpha 0.3), trained on all 4,000 events, to" in run(*given).stdout
    run("replay", logs / "plain", "--policy", "random", "--save", file, status=2)


def test_a_payoff_that_is_no_click_is_not_called_a_ctr(logs: Path, tmp_path: Path) -> None:
    log = ts.EventLog.read(logs / "plain")
    replace(log, payoff=(log.payoff * 20).astype("f4")).write(tmp_path / "dwell")
    for policy in ("ucb", "ucb,egreedy"):
        printed = run("replay", tmp_path / "dwell", "--policy", policy).stdout
        assert "CTR" not in printed
        assert "click" not in printed
    assert answer("replay", tmp_path / "dwell", "--policy", "ucb")["binary"] is False


def test_dr_ns_shows_both_quantiles(logs: Path) -> None:
    asked = ("replay", logs / "recorded", "--policy", "linucb-disjoint", "--estimator", "dr-ns")
    report = answer(*asked, "--quantile", 0.2, "--seed", 3)
    log = ts.EventLog.read(logs / "recorded")
    assert [each["quantile"] for each in report["policies"]] == [0.0, 0.2]
    for printed in report["policies"]:
        policy = ts.policy("linucb-disjoint", seed=3)
        found = ts.dr_ns(policy, log, quantile=printed["quantile"], seed=3)
        assert printed["value"]["value"] == found.value.value
        assert (printed["trials"], printed["missing"]) == (found.trials, found.missing)
    assert "a share of the policy's own trials stays missing" in words(run(*asked).stdout)
    assert "expected rejection or dr-ns" in words(run(*asked[:-1], "x", status=2).stderr)
    warm = ("replay", logs / "recorded", "--policy", "ucb-warm", "--estimator", "dr-ns")
    assert "dr-ns cannot run ucb-warm" in words(run(*warm, status=2).stderr)
