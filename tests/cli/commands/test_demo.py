"""`topstory demo`."""

from __future__ import annotations

import pytest
from tests.cli.running import answer, run

import topstory as ts
from topstory.cli.commands.demo import SEPTEMBER, USERS
from topstory.policies.registry import PAPER


def test_it_replays_the_twelve_over_a_simulated_log() -> None:
    report = answer("demo", "--events", 5_000, "--seed", 3)
    world = ts.TodayModule(3, users=USERS)
    explored, log = world.random_log(1_000, SEPTEMBER), world.random_log(5_000)
    assert report["log"] == "simulated"
    assert (report["events"], report["warm"]["events"]) == (5_000, 1_000)
    random = ts.replay(ts.policy("random", seed=3), log, seed=3)
    assert report["random_ctr"] == pytest.approx(random.random_ctr)
    assert [policy["policy"] for policy in report["policies"]] == list(PAPER)
    found = ts.compare("ucb-warm", log, warm_from=explored, alpha=0.4, seed=3)
    by_name = {policy["policy"]: policy for policy in report["policies"]}
    assert by_name["ucb-warm"]["deployment"]["ctr"] == found.bucket("ucb-warm").ctr


def test_it_calls_the_log_simulated_and_closes_with_advice() -> None:
    printed = run("demo", "--events", 200_000).stdout
    assert printed.strip().startswith("A simulated log")
    advice, truth = printed.strip().splitlines()[-2:]
    assert advice.startswith(("Run ", "No policy is significantly better"))
    assert "than ε-greedy (simultaneous 95 % interval" in advice
    assert truth.startswith("The truth, which the simulator knows: ")
    assert len(truth.split(", ")) == 1 + len(PAPER)


def test_a_single_event_gives_no_advice() -> None:
    assert "Too few clicks" in run("demo", "--events", 1).stdout
