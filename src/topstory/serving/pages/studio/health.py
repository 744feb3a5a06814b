"""The studio's page of health: requests, journal, workers and disk."""

from __future__ import annotations

import shutil
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from topstory.serving.http.prometheus import Metrics
from topstory.serving.http.request_counts import LATENCY_BOUNDS, Latency, RequestCounts
from topstory.serving.journal.clock import SECOND
from topstory.serving.service.service import Service
from topstory.serving.upkeep.keeper import Keeper

REASONS = {
    400: "unreadable",
    401: "no key, or an unknown one",
    403: "wrong role, or a forged decision id",
    404: "not found",
    405: "wrong method",
    408: "too slow",
    409: "in conflict with the state",
    410: "too late",
    413: "too large",
    422: "wrong values",
    429: "above the key's rate",
    431: "headers too large",
    500: "a fault of ours",
    503: "overloaded, or the journal cannot be written",
}


async def health(
    service: Service, keeper: Keeper, metrics: Metrics, requests: RequestCounts
) -> dict[str, Any]:
    """Everything that the page shows."""
    outliers = await metrics.outliers()
    commits, config = service.commits, service.config
    folder = Path(config.data)
    disk = shutil.disk_usage(folder)
    refused: Counter[int] = Counter()
    for (_, status), count in requests.statuses.items():
        if status >= 400:
            refused[status] += count
    return {
        "version": version("topstory"),
        "workers": config.workers,
        "routes": [
            {
                "route": route,
                "requests": sum(latency.counts),
                "mean": latency.total / max(1, sum(latency.counts)),
                **{f"p{share}": quantile(latency, share / 100) for share in (50, 95, 99)},
            }
            for route, latency in sorted(requests.latencies.items())
        ],
        "refused": [
            {"status": status, "reason": REASONS.get(status, "refused"), "requests": count}
            for status, count in sorted(refused.items())
        ],
        "outliers": outliers,
        "journal": {
            "records": service.state.number,
            "waiting": commits.waiting,
            "commits": commits.count,
            "last_commit_seconds": commits.seconds,
            "failing": commits.failing,
            "kind": "PostgreSQL" if config.journal.url else "SQLite",
            "bytes": sum(file.stat().st_size for file in folder.glob("journal.sqlite*")),
            "snapshot_age_seconds": (service.clock.now() - keeper.at) / SECOND,
            "snapshot_lag_records": service.state.number - keeper.number,
            "clock_ahead_seconds": service.clock.ahead / SECOND,
        },
        "disk": {"free": disk.free, "total": disk.total},
    }


def quantile(latency: Latency, share: float) -> float | None:
    """The bound that this share of requests was below; None if the slowest were beyond all.

    >>> latency = Latency()
    >>> for seconds in (0.0004, 0.0004, 0.002, 0.04):
    ...     latency.count(seconds)
    >>> quantile(latency, 0.5), quantile(latency, 0.99)
    (0.0005, 0.05)
    """
    total = sum(latency.counts)
    passed = 0
    for bound, count in zip(LATENCY_BOUNDS, latency.counts, strict=False):
        passed += count
        if total and passed >= share * total:
            return bound
    return None
