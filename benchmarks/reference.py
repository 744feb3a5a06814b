"""A policy's full scan, and a pass that only reads: what replay's speed is compared with."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

import topstory as ts
from benchmarks import full_scan
from benchmarks.full_scan import Averages, Bench, Columns, Disjoint, Hybrid, Rule
from topstory.kernels.compilation import Floats
from topstory.models import Model
from topstory.models.roster import article_key


def columns(log: ts.EventLog) -> Columns:
    """The log's columns, as the reference takes them."""
    assert isinstance(log.users, np.ndarray), "the reference reads dense contexts"
    keys = np.array([article_key(article) for article in log.article_ids], np.uint64)
    position = cast(NDArray[np.uint16], log.position)
    return Columns(
        log.users, log.pool, position, log.payoff, log.pool_offsets, log.pool_members, keys
    )


def scan(policy: ts.Policy, log: ts.EventLog) -> Floats:
    """(2, 2) trials and payoff of the deployment bucket, then of the learning bucket."""
    rule = Rule(float(policy.explorer.bonus), float(policy.explorer.share), np.uint64(policy.seed))
    count, d = len(log.article_ids), log.dimension
    bench = Bench(np.zeros(d), np.zeros(count), np.zeros(count), np.zeros((2, 2)))
    model = policy.model
    if isinstance(model, ts.HybridLinear):
        assert log.features is not None, "the hybrid reference needs article features"
        full_scan.scan_hybrid(columns(log), rule, _hybrid(log.features, d), bench)
    elif isinstance(model, ts.DisjointLinear):
        state = Disjoint(
            _identities(count, d), np.zeros((count, d)), np.zeros((count, d)), np.zeros(d)
        )
        full_scan.scan_disjoint(columns(log), rule, state, bench)
    else:
        segmented = isinstance(model, ts.Segmented)
        full_scan.scan_averages(columns(log), rule, segmented, _averages(model, log), bench)
    return bench.sums


def _identities(count: int, size: int) -> Floats:
    return np.tile(np.eye(size), (count, 1, 1))


def _hybrid(features: Floats, d: int) -> Hybrid:
    count, m = features.shape
    k = d * m
    return Hybrid(
        A0_inverse=_identities(1, k),
        b0=np.zeros(k),
        beta=np.zeros(k),
        inverse=_identities(count, d),
        B=np.zeros((count, d, k)),
        b=np.zeros((count, d)),
        features=features,
        room=np.zeros((3, d)),
        shared_room=np.zeros((4, k)),
    )


def _averages(model: Model, log: ts.EventLog) -> Averages:
    count = len(log.article_ids)
    shape = (count, log.dimension - 1 if isinstance(model, ts.Segmented) else 1)
    mean, offset = np.zeros(shape), np.zeros((0, 0))
    if isinstance(model, ts.Warm):
        table = model.parameters()["offset"]
        offset = np.array([table[article] for article in log.article_ids])
    if isinstance(model, ts.Hindsight):
        shown = np.bincount(log.shown_index, minlength=count)
        mean[:, 0] = np.bincount(log.shown_index, log.payoff, minlength=count)
        mean[:, 0] /= np.maximum(shown, 1)
    learns = not isinstance(model, ts.Hindsight | ts.NoModel)
    return Averages(np.zeros(shape), np.zeros(shape), mean, np.full(shape, np.inf), offset, learns)


def sums(result: ts.Result) -> Floats:
    """What `scan` returns, from a replay."""
    buckets = (result.deployment, result.learning)
    return np.array([[bucket.trials, bucket.payoff] for bucket in buckets], np.float64)


def check(policy: ts.Policy, log: ts.EventLog) -> int:
    """Replay must retain exactly what the full scan retains; the trials compared."""
    expected, found = scan(policy, log), sums(ts.replay(policy, log))
    if not np.array_equal(expected, found):
        raise AssertionError(
            f"{policy!r}: the full scan retained {expected.tolist()}, replay {found.tolist()}"
        )
    return int(expected[:, 0].sum())


def read(log: ts.EventLog) -> Floats:
    """Read the columns once."""
    sums = np.zeros(log.dimension + 1)
    full_scan.read_columns(columns(log), sums)
    return sums
