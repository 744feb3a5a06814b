"""On a Ray cluster, workers read the parts of a log from an object store: the caller reads none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import ray
from tests.evaluation.off_policy.folders.test_judge_folder import check_equal, logged, trained
from tests.events.folder.test_object_store import put, store  # noqa: F401
from typer.testing import CliRunner

import topstory as ts
from topstory.cli.app import app
from topstory.engines import Engine, engine
from topstory.events.folder.parts import LogFolder, LogPart


@pytest.fixture(scope="module")
def workers(store: str) -> Iterator[Engine]:  # noqa: F811 # workers inherit its environment
    ray.shutdown()
    yield engine("ray", workers=2)
    ray.shutdown()


@pytest.fixture(scope="module")
def url(store: str, tmp_path_factory: pytest.TempPathFactory) -> str:  # noqa: F811
    """Eleven days, and so eleven files."""
    folder = tmp_path_factory.mktemp("here") / "logs"
    logged().write(folder)
    put(folder, store, "days")
    return store.replace("%", "days")


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process cannot read events; the workers' processes can."""

    def read(self: LogFolder, part: LogPart) -> ts.EventLog:
        raise AssertionError(f"the caller reads {part}")

    monkeypatch.setattr(LogFolder, "read", read)


@pytest.mark.usefixtures("blind")
def test_workers_evaluate_what_they_read(workers: Engine, url: str) -> None:
    given = {"trained": trained(logged()[:300]), "egreedy-disjoint": "egreedy-disjoint"}
    found = ts.evaluate(given, url, estimator="dr", engine=workers)
    log = logged()
    assert found.events == len(log) // 2
    check_equal(found, ts.evaluate(given, log, estimator="dr"), 1e-9)


def test_every_engine_has_the_same_bits(workers: Engine, url: str) -> None:
    given = {"trained": trained(logged()[:300]), "egreedy-disjoint": "egreedy-disjoint"}
    here = ts.evaluate(given, url, estimator="dr", engine="serial")
    check_equal(ts.evaluate(given, url, estimator="dr", engine=workers), here, 0.0)


@pytest.mark.usefixtures("blind")
def test_workers_train_on_what_they_read(workers: Engine, url: str) -> None:
    policy = ts.policy("linucb-hybrid")
    assert ts.train(policy, url, engine=workers, held_out=0).events == len(logged())
    with pytest.raises(AssertionError, match="the caller reads"):
        ts.train(policy, url, engine="serial", held_out=0)


def test_training_has_the_same_bits_on_every_engine(
    workers: Engine, url: str, tmp_path: Path
) -> None:
    found = {}
    for where in ("serial", workers):
        done = ts.train(ts.policy("linucb-hybrid"), url, engine=where, held_out=0.1)
        done.policy.save(tmp_path / "policy")
        found[where] = ((tmp_path / "policy").read_bytes(), done.events, done.effective_events)
    assert found["serial"] == found[workers]


def test_the_command_reads_a_store_on_ray(workers: Engine, url: str) -> None:
    base = ["evaluate", url, "--policy", "egreedy-disjoint", "--json", "--engine"]
    printed = []
    for name in ("ray", "serial"):
        done = CliRunner().invoke(app, [*base, name])
        assert done.exit_code == 0, done.output
        printed.append(json.loads(done.stdout))
    for report in printed:
        del report["seconds"], report["events_per_second"]
    assert printed[0] == printed[1]
    assert np.isfinite(printed[0]["values"][0]["value"]["value"])
