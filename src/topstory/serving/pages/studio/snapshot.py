"""The state of a pool as the studio shows it, computed once a second however many look."""

from __future__ import annotations

from time import monotonic, time
from typing import Any

import msgspec

from topstory.serving.api.messages import BUCKETS
from topstory.serving.journal.clock import SECOND
from topstory.serving.pages.studio.history import (
    DAY,
    HOUR,
    WEEK,
    CountHistory,
    by_bucket,
    counts_of,
)
from topstory.serving.pages.studio.lift import lift
from topstory.serving.pages.studio.simulation import Simulation
from topstory.serving.service.service import Service
from topstory.serving.upkeep.keeper import Keeper

FRESH_SECONDS = 0.9
POINTS = 90  # of a chart
WINDOWS = {"hour": HOUR, "day": DAY, "week": WEEK}
LIVE_POINTS = 300
LIVE_SECONDS = 600  # of the chart of this moment
QUIET_SECONDS = 300  # without a visit
OLD_SNAPSHOT_SECONDS = 600


class StudioSnapshots:
    """Makes snapshots, and keeps each for a second."""

    def __init__(
        self,
        service: Service,
        keeper: Keeper,
        history: CountHistory,
        simulation: Simulation | None,
    ) -> None:
        self._service, self._keeper, self._history = service, keeper, history
        self._simulation = simulation
        self._kept: dict[str, tuple[float, bytes]] = {}
        self._started = monotonic()

    def of(self, name: str) -> bytes:
        """The snapshot of a pool, as JSON."""
        now = monotonic()
        kept = self._kept.get(name)
        if kept is None or now - kept[0] > FRESH_SECONDS:
            kept = self._kept[name] = (now, msgspec.json.encode(self._make(name)))
        return kept[1]

    def sample(self) -> None:
        """Add the counts of all pools to the history."""
        now = time()
        for name, decider in self._service.deciders.items():
            self._history.add(name, now, counts_of(decider.pool.tally))

    def _make(self, name: str) -> dict[str, Any]:
        service, now = self._service, time()
        pool = service.decider(name).pool
        counts = counts_of(pool.tally)
        ever = by_bucket(counts, BUCKETS)
        windows = {
            window: by_bucket(self._history.since(name, now - seconds, counts), BUCKETS)
            for window, seconds in WINDOWS.items()
        }
        midnight = now - now % DAY
        today = by_bucket(self._history.since(name, midnight, counts), BUCKETS)
        shares = service.decider(name).traffic.shares
        at = service.clock.now()
        return {
            "pool": name,
            "pools": list(service.deciders),
            "at": round(now, 1),
            "uptime": round(monotonic() - self._started),
            "policy": repr(pool.policy),
            "articles": len(pool.articles),
            "showable": len(pool.listing(at).ids),
            "shares": dict(zip(BUCKETS, map(float, shares), strict=True)),
            "buckets": ever,
            "windows": windows,
            "today": today,
            "lift": lift(
                *(_earned(ever["deployment"]), _earned(ever["uniform"])),
                service.config.limits.payoffs or (0.0, 1.0),
            ),
            "gained": _gained(today),
            "cost": _cost(windows["hour"]),
            "series": {
                "live": self._history.series(name, now - LIVE_SECONDS, LIVE_POINTS),
                **{
                    window: self._history.series(name, now - seconds, POINTS)
                    for window, seconds in WINDOWS.items()
                },
            },
            "alarms": self._alarms(name, at, len(pool.listing(at).ids)),
            "simulation": None if self._simulation is None else self._simulated(now),
        }

    def _simulated(self, now: float) -> dict[str, Any]:
        assert self._simulation is not None
        return {
            "rate": self._simulation.rate,
            "series": self._simulation.series(now - LIVE_SECONDS),
        }

    def _alarms(self, name: str, at: int, showable: int) -> list[dict[str, str]]:
        """What somebody should look at: how bad, in words, and the page that says what to do."""
        service, found = self._service, []
        pool = service.decider(name).pool
        if service.commits.failing is not None:
            words = f"The journal cannot be written: {service.commits.failing}"
            found.append(("bad", words, "operations/alarms/"))
        if not showable:
            words = "No article can be shown now: add one, or change `from` and `until`."
            found.append(("bad", words, "guides/serving/#edit-the-pool"))
        age = (at - self._keeper.at) / SECOND
        behind = service.state.number - self._keeper.number
        if behind and age > max(OLD_SNAPSHOT_SECONDS, 3 * service.config.journal.snapshot_seconds):
            words = f"The newest snapshot is {age / 60:.0f} minutes old: a start would take longer."
            found.append(("warn", words, "operations/monitoring/"))
        if service.clock.ahead > 5 * SECOND:
            words = f"The journal's time is {service.clock.ahead / SECOND:.0f} seconds ahead."
            found.append(("warn", words, "operations/running/"))
        counts = counts_of(pool.tally)
        recent = self._history.since(name, time() - QUIET_SECONDS, counts)
        running = monotonic() - self._started > QUIET_SECONDS
        if running and any(counts) and not any(recent[: len(BUCKETS)]):
            words = f"No visit in the last {QUIET_SECONDS // 60} minutes: does your site still ask?"
            found.append(("warn", words, "operations/monitoring/"))
        return [{"kind": kind, "words": words, "page": page} for kind, words, page in found]


def _earned(bucket: dict[str, float | None]) -> tuple[float, float]:
    return bucket["shows"] or 0.0, bucket["payoff"] or 0.0


def _gained(today: Any) -> float | None:
    """Payoffs above what as many articles at random would have earned."""
    rate = today["uniform"]["ctr"]
    if rate is None:
        return None
    return float(
        sum(
            today[bucket]["payoff"] - rate * today[bucket]["shows"]
            for bucket in ("learning", "deployment")
        )
    )


def _cost(hour: Any) -> float | None:
    """Payoffs an hour that exploring gives up, against deployment for everybody."""
    best = hour["deployment"]["ctr"]
    if best is None:
        return None
    return float(
        sum(best * hour[name]["shows"] - hour[name]["payoff"] for name in ("learning", "uniform"))
    )
