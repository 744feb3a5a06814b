"""`topstory prior` writes what `ts.fit_prior` learns, and the other commands start from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import answer, run, words

import topstory as ts


@pytest.fixture(scope="module")
def prior(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("prior") / "prior.safetensors"
    assert "teach about new ones" in words(run("prior", logs / "explored", out).stdout)
    return out


def test_the_file_and_the_json_are_those_of_the_python_api(
    logs: Path, prior: Path, tmp_path: Path
) -> None:
    found = ts.fit_prior(ts.EventLog.read(logs / "explored"))
    assert ts.Prior.load(prior).equals(found)
    report = answer("prior", logs / "explored", tmp_path / "again")
    assert (report["format"], report["version"]) == ("topstory-prior", 1)
    assert (report["events"], report["articles"]) == (found.events, found.articles)
    assert (report["ridge"], report["weight"]) == (found.ridge, found.weight)
    assert [report["mean_payoff"], report["mean_trials"]] == found.averages[0].tolist()


def test_replay_starts_from_it_or_learns_one_first(logs: Path, prior: Path) -> None:
    replay = ("replay", logs / "uniform", "--policy", "linucb-hybrid-prior", "--alpha", 0.2)
    whole = answer(*replay, "--prior", prior, "--repeats", 1)
    assert whole["warm"] is None
    given = whole["policies"][0]
    explored = answer(*replay, "--warm-from", logs / "explored", "--repeats", 1)["policies"][0]
    assert given["deployment"] == explored["deployment"]
    log, known = ts.EventLog.read(logs / "uniform"), ts.Prior.load(prior)
    found = ts.replay(ts.policy("linucb-hybrid-prior", alpha=0.2, prior=known), log)
    assert given["deployment"]["ctr"] == found.deployment.ctr
    tenth = answer(*replay, "--repeats", 1)
    assert tenth["events"] == 18_000
    assert tenth["warm"]["source"] == "first tenth"
    printed = words(run(*replay, "--repeats", 1).stdout)
    assert "The prior was fitted on the log's first tenth (2,000 events)" in printed


def test_tune_and_train_start_from_it(logs: Path, prior: Path, tmp_path: Path) -> None:
    name = ("--policy", "linucb-disjoint-prior", "--prior", prior)
    tuned = answer("tune", logs / "uniform", *name, "--grid", "0.1,0.3", "--repeats", 1)
    assert [point["parameters"] for point in tuned["curves"][0]["points"]] == [
        {"alpha": 0.1},
        {"alpha": 0.3},
    ]
    out = tmp_path / "policy.safetensors"
    trained = answer("train", logs / "uniform", *name, "--out", out)
    assert trained["events"] == 20_000
    held = ts.Policy.load(out).model.prior
    assert held is not None
    assert held.equals(ts.Prior.load(prior))


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("replay", "uniform", "--policy", "ucb", "--prior", "P"), 2, "does not apply to ucb"),
        (("train", "uniform", "--policy", "ucb", "--out", "o", "--prior", "P"), 2, "not apply"),
        (("replay", "uniform", "--policy", "ucb-prior", "--prior", "missing"), 1, "missing"),
        (("prior", "empty", "o"), 1, "the log has none"),
        (("prior", "uniform", "nowhere/o"), 1, "no folder nowhere"),
    ],
)
def test_bad_input_is_named(
    logs: Path, prior: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    given = [logs / a if a in ("uniform", "empty") else prior if a == "P" else a for a in arguments]
    assert message in words(run(*given, status=status).stderr)
