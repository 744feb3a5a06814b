"""Logs in an object store: an S3-compatible server on this machine (moto)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from moto.server import ThreadedMotoServer
from pyarrow.fs import FileSystem, copy_files
from tests.engines.apart import ApartEngine
from typer.testing import CliRunner

import topstory as ts
from topstory.cli.app import app
from topstory.events.folder.location import location
from topstory.events.folder.parts import read_parts


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """A bucket: its URL, with % for the path."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AWS_ACCESS_KEY_ID", "somebody")
            environment.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
            environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
            _, port = server.get_host_and_port()
            options = f"scheme=http&region=us-east-1&endpoint_override=127.0.0.1:{port}"
            made = f"s3://news/%?{options}&allow_bucket_creation=true"
            bucket, path = FileSystem.from_uri(made.replace("/%", ""))
            bucket.create_dir(path)
            yield f"s3://news/%?{options}"
    finally:
        server.stop()


@pytest.fixture(scope="module")
def log() -> ts.EventLog:
    """Two days, and so two files."""
    random, stories = np.random.default_rng(3), ["rain", "sun", "wind"]
    return ts.EventLog.from_arrays(
        np.column_stack([random.random((600, 2)), np.ones(600)]),
        [stories],
        np.zeros(600, int),
        random.choice(stories, 600),
        random.random(600) < 0.3,
        timestamps=1_700_000_000 + np.arange(600) * 250,
    )


@pytest.fixture(scope="module")
def url(store: str, log: ts.EventLog, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("here") / "logs"
    log.write(folder)
    put(folder, store, "logs")
    return store.replace("%", "logs")


def put(folder: Path, store: str, name: str) -> None:
    bucket, path = FileSystem.from_uri(store.replace("%", name))
    copy_files(str(folder), path, destination_filesystem=bucket)


def test_a_log_in_a_store_is_the_log(url: str, log: ts.EventLog) -> None:
    read = ts.EventLog.read(url)
    assert len(read) == len(log)
    np.testing.assert_array_equal(read.users, log.users)
    np.testing.assert_array_equal(read.payoff, log.payoff)
    assert read.article_ids == log.article_ids
    files = [len(part) for part in read_parts(url, 0, len(log))]
    assert len(files) > 1
    assert sum(files) == len(log)


def test_training_from_a_store_gives_the_same_bits(
    url: str, log: ts.EventLog, tmp_path: Path
) -> None:
    out = tmp_path / "policy.safetensors"
    done = CliRunner().invoke(
        app, ["train", url, "--policy", "linucb-disjoint", "--out", str(out), "--json"]
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["events"] == len(log)
    trained = ts.train(ts.policy("linucb-disjoint"), log).policy
    pool, user = log.pools[0], log.context(0)
    found = ts.Policy.load(out).estimates(user, pool)
    np.testing.assert_array_equal(found, trained.estimates(user, pool))


def test_workers_that_share_no_memory_read_a_store(
    url: str, log: ts.EventLog, tmp_path: Path
) -> None:
    log.write(tmp_path / "here")
    policy = ts.policy("linucb-disjoint")
    there, here = (
        ts.train(policy, place, held_out=0, engine=each).policy
        for place, each in ((url, ApartEngine()), (tmp_path / "here", "serial"))
    )
    pool, user = log.pools[0], log.context(0)
    np.testing.assert_array_equal(there.estimates(user, pool), here.estimates(user, pool))
    judged = [
        ts.evaluate({"trained": here}, place, estimator="dr", engine=each)["trained"]
        for place, each in ((url, ApartEngine()), (tmp_path / "here", "serial"))
    ]
    assert repr(judged[0]) == repr(judged[1])  # to the bit


def test_features_are_fitted_from_a_store(store: str, tmp_path: Path) -> None:
    visitor, stories = np.arange(400) % 40, ["rain", "sun"]
    raw = ts.EventLog.from_arrays(
        None,
        [stories],
        np.zeros(400, int),
        np.resize(stories, 400),
        visitor % 3 == 0,
        visitor=visitor,
        profiles={"country": np.resize(["at", "de", "ch"], 40), "age": np.arange(40.0)},
        article_profiles={"topic": ["weather", "weather"]},
    )
    raw.write(tmp_path / "raw")
    put(tmp_path / "raw", store, "raw")
    here = ts.FeatureBuilder(method="direct").fit_folder(tmp_path / "raw")
    there = ts.FeatureBuilder(method="direct").fit_folder(store.replace("%", "raw"))
    assert there.identity == here.identity


def test_what_is_wrong_is_said_in_one_line(store: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^s3://news/nothing: there is no such folder$"):
        ts.EventLog.read(store.replace("%", "nothing"))
    (tmp_path / "log.json").write_text("{}")
    put(tmp_path, store, "wrong")
    with pytest.raises(ValueError, match=r"^s3://news/wrong/log\.json: not a topstory log"):
        ts.EventLog.read(store.replace("%", "wrong"))
    with pytest.raises(ValueError, match=r"^s3://b/logs: its URL has credentials") as refused:
        location("s3://me:a-secret@b/logs")
    assert "a-secret" not in str(refused.value)
    with pytest.raises(ValueError, match="copy the folder there"):
        ts.EventLog.read(store.replace("%", "logs")).write("s3://news/copy")


def test_a_damaged_object_is_named(url: str, store: str, log: ts.EventLog, tmp_path: Path) -> None:
    log.write(tmp_path / "logs")
    file = sorted((tmp_path / "logs" / "events").iterdir())[0]
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(content)
    put(tmp_path / "logs", store, "damaged")
    with pytest.raises(ValueError, match=rf"^s3://news/damaged/events/{file.name}: damaged"):
        ts.EventLog.read(store.replace("%", "damaged"))
