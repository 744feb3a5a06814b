"""What the buckets showed and earned over time: samples of the counts, kept for a week."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from topstory.files import replaced_file
from topstory.serving.state.tally import Tally

HOUR, DAY, WEEK = 3600, 86_400, 604_800
# Seconds between samples, and how many are kept: a quarter of an hour, a day, a week.
RESOLUTIONS = ((1, 901), (60, 1501), (900, 700))

PoolCounts = tuple[float, ...]  # shows by bucket, then payoffs by bucket: since ever
Sample = tuple[int, PoolCounts]

log = logging.getLogger("topstory.serving")


class Ring:
    """The last samples, one at most for each step of time."""

    def __init__(self, seconds: int, kept: int, samples: Sequence[Sample] = ()) -> None:
        self.seconds, self.span = seconds, seconds * (kept - 1)
        self.samples: deque[Sample] = deque(samples, kept)

    def add(self, now: float, counts: PoolCounts) -> None:
        """Keep a sample, instead of another in the same step."""
        if not self.samples or self.samples[-1][0] // self.seconds < now // self.seconds:
            self.samples.append((int(now), counts))


class CountHistory:
    """Samples of every pool's counts, in three resolutions.

    >>> history = CountHistory()
    >>> for second in range(20):
    ...     history.add("front", 1000.0 + second, (second * 10.0, 0, 0, second * 1.0, 0, 0))
    >>> history.since("front", 1010.0, (190.0, 0, 0, 19.0, 0, 0))
    (90.0, 0.0, 0.0, 9.0, 0.0, 0.0)
    """

    def __init__(self) -> None:
        self._rings: dict[str, tuple[Ring, ...]] = {}

    def add(self, name: str, now: float, counts: PoolCounts) -> None:
        """Sample the counts of a pool."""
        for ring in self._of(name):
            ring.add(now, counts)

    def since(self, name: str, start: float, counts: PoolCounts) -> PoolCounts:
        """What was added to the counts since then, or since the first sample."""
        ring = self._reaching(name, start)
        if ring is None:
            return tuple(0.0 for _ in counts)
        earlier = [each for each in ring.samples if each[0] <= start]
        before = (earlier[-1] if earlier else ring.samples[0])[1]
        return tuple(max(0.0, now - then) for now, then in zip(counts, before, strict=True))

    def series(self, name: str, start: float, points: int) -> list[Sample]:
        """At most so many samples since then, from the finest resolution that reaches so far."""
        ring = self._reaching(name, start)
        if ring is None:
            return []
        found = [each for each in ring.samples if each[0] >= start - ring.seconds]
        every = -(-len(found) // points)
        return found[::-every][::-1] if every > 1 else found

    def _reaching(self, name: str, start: float) -> Ring | None:
        """The finest ring that has a sample of that time, or else one with the oldest sample."""
        rings = [ring for ring in self._of(name) if ring.samples]
        oldest = min((ring.samples[0][0] for ring in rings), default=0)
        return next((r for r in rings if r.samples[0][0] <= max(start, oldest)), None)

    def _of(self, name: str) -> tuple[Ring, ...]:
        found = self._rings.get(name)
        if found is None:
            found = self._rings[name] = tuple(Ring(*each) for each in RESOLUTIONS)
        return found

    # -- on disk: only for the charts; without the file they begin anew --

    def write(self, path: Path) -> None:
        """Keep the samples of minutes and quarters of an hour."""
        kept = {
            name: {str(ring.seconds): list(ring.samples) for ring in rings[1:]}
            for name, rings in self._rings.items()
        }
        with replaced_file(path, mode=0o600) as file:
            file.write(msgspec.json.encode(kept))

    @classmethod
    def read(cls, path: Path) -> CountHistory:
        """The samples that were kept; none if the file is missing or damaged."""
        history = cls()
        try:
            kept = msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, list[Sample]]])
        except FileNotFoundError:
            return history
        except (OSError, msgspec.DecodeError) as error:
            log.warning("%s cannot be used, the studio's charts begin anew: %s", path, error)
            return history
        for name, by_seconds in kept.items():
            history._rings[name] = tuple(
                Ring(seconds, count, by_seconds.get(str(seconds), ()))
                for seconds, count in RESOLUTIONS
            )
        return history


def counts_of(tally: Tally) -> PoolCounts:
    """The counts of a pool: shows by bucket, then payoffs by bucket."""
    return (*map(float, map(sum, tally.shows)), *map(float, map(sum, tally.payoff)))


def by_bucket(counts: PoolCounts, buckets: Sequence[str]) -> Mapping[str, dict[str, float | None]]:
    """Shows, payoff and CTR of each bucket.

    >>> by_bucket((10, 0, 1, 0), ("learning", "uniform"))["learning"]["ctr"]
    0.1
    """
    number = len(buckets)
    return {
        name: {
            "shows": counts[place],
            "payoff": counts[number + place],
            "ctr": counts[number + place] / counts[place] if counts[place] else None,
        }
        for place, name in enumerate(buckets)
    }
