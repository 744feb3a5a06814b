"""A real Ray cluster of two nodes on this machine, one of which dies in the middle of the work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster
from tests.studies.small import small_study

from topstory.engines.ray import RayEngine

STORE = 100_000_000  # bytes of each node's object store: the least that Ray takes is 75 MB


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head with one core; tests add the node that they kill."""
    head = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
    found = Cluster(initialize_head=True, head_node_args=head)
    yield found
    ray.shutdown()
    found.shutdown()  # type: ignore[no-untyped-call] # Ray types only a part of itself


@pytest.fixture
def engine(cluster: Cluster) -> RayEngine:
    return RayEngine(address=cluster.address)


def slow(item: int, shared: np.ndarray[Any, Any]) -> tuple[float, str, bool]:
    time.sleep(0.15)
    node = str(ray.get_runtime_context().get_node_id())
    return float(item * shared.sum()), node, bool(shared.flags.writeable)


@pytest.mark.long  # The study below goes on after such a loss, too; a node takes long to start.
def test_calls_of_a_node_that_dies_are_made_again(cluster: Cluster, engine: RayEngine) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    shared, results, nodes = np.ones(100_000), {}, set()
    killed = False
    for place, (value, where, writeable) in engine.finished(slow, list(range(40)), shared):
        assert place not in results
        assert not writeable  # read where it lies in the object store, not a copy
        results[place] = value
        nodes.add(where)
        if len(nodes) == 2 and not killed:
            cluster.remove_node(node, allow_graceful=False)
            killed = True
    assert killed, "both nodes took part"
    assert results == {item: item * 100_000.0 for item in range(40)}


def test_a_study_on_a_cluster_that_loses_a_node_has_the_same_bits(
    cluster: Cluster, engine: RayEngine, tmp_path: Path
) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    reports = 0

    def watch(what: str, done: float, total: float) -> None:
        nonlocal reports
        reports += 1
        if reports == 5:
            cluster.remove_node(node, allow_graceful=False)

    found = small_study(tmp_path / "ray", engine=engine, progress=watch)
    wanted = small_study(tmp_path / "serial", engine="serial")
    assert found.engine == "ray"
    timed = {"seconds"}
    ours, theirs = (each.runs().drop_columns(list(timed)) for each in (found, wanted))
    assert ours.equals(theirs)
