"""What workers count is shown once, as a sum."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.workers.counts import UnreportedCounts, add


def test_what_a_worker_has_reported_it_does_not_report_again() -> None:
    features: Any = SimpleNamespace(unknown=Counter({"gender": 2}))
    view: Any = SimpleNamespace(torn_reads=3)
    theirs, ours = RequestCounts(), RequestCounts()
    theirs.count("/v1/decide", 200, 0.002)
    found = [{"context": 1}, {}, {}]
    counts = UnreportedCounts(theirs, view, features, lambda: found.pop(0))
    first, second = counts.taken(), counts.taken()
    assert (first.torn_reads, second.torn_reads) == (3, 0)
    add(first, ours)
    add(second, ours)
    features.unknown["gender"] += 1
    add(counts.taken(), ours)
    assert ours.statuses == {("/v1/decide", 200): 1}
    assert ours.unknown == {"gender": 3}
