"""Tuning curves: what a policy earned with each parameter, and which one to run it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from topstory.evaluation.exploration import (
    LEARNING_SHARE,
    ExplorationCost,
    exploration_cost,
    total_bucket,
)
from topstory.evaluation.replays.run import BUCKETS, TOTAL, Outcome
from topstory.evaluation.result import Bucket
from topstory.evaluation.tuning.grids import parameter_name
from topstory.evaluation.tuning.recommendation import Recommendation, TriedPoint, recommend
from topstory.evaluation.uncertainty.repeats import Estimate, log_variance, mean_relative_ctr
from topstory.evaluation.uncertainty.simultaneous import Claim, simultaneous_lifts
from topstory.evaluation.uncertainty.winner import shrunk_relative_ctrs

if TYPE_CHECKING:
    from pyarrow import Table


@dataclass(frozen=True)
class Point:
    """One point of a tuning curve: a policy's relative CTR at one size with one parameter."""

    policy: str
    size: float
    parameters: Mapping[str, float]
    deployment: Estimate
    learning: Estimate
    total: Estimate  # of both buckets, at the learning share
    learning_share: float
    outcomes: tuple[Outcome, ...] = field(repr=False)  # one for each seed

    @property
    def parameter(self) -> float:
        """ε or α."""
        return self.parameters[parameter_name(self.policy)]

    @cached_property
    def exploration(self) -> ExplorationCost:
        """What exploring costs."""
        return exploration_cost(
            self.buckets("deployment"), self.buckets("learning"), self.learning_share
        )

    def buckets(self, name: str) -> list[Bucket]:
        """`deployment`, `learning` or `total` of each run."""
        return [bucket_of(outcome, name, self.learning_share) for outcome in self.outcomes]


def bucket_of(outcome: Outcome, name: str, learning_share: float) -> Bucket:
    """A bucket of a run, or both of them at a split of traffic."""
    if name != TOTAL:
        return outcome.bucket(name)
    return total_bucket(outcome.bucket("deployment"), outcome.bucket("learning"), learning_share)


@dataclass(frozen=True)
class Tuning:
    """A policy's tuning curves, one for every size, and what to run at each."""

    policy: str
    on: str
    points: tuple[Point, ...]
    learning_share: float = LEARNING_SHARE
    widened: tuple[str, ...] = ()  # parameters of which more values were tried than the default
    scale: float = 1.0  # of payoffs, beside clicks

    @property
    def sizes(self) -> tuple[float, ...]:
        """In the order given."""
        return tuple(dict.fromkeys(point.size for point in self.points))

    def curve(self, size: float = 1.0) -> tuple[Point, ...]:
        """The points of one size."""
        found = tuple(point for point in self.points if point.size == size)
        if not found:
            known = ", ".join(f"{each:g}" for each in self.sizes)
            raise ValueError(f"size {size!r} was not tuned; there are {known}")
        return found

    def best(self, size: float = 1.0) -> Point:
        """The point to run with: recommended by all points together, ties to the cheaper one."""
        return self._best[self.curve(size)[0].size]

    def highest(self, size: float = 1.0) -> Point:
        """The point with the highest relative CTR of its own: partly luck."""
        # Without a click no point has a CTR: any of them is as good.
        return max(self.curve(size), key=lambda point: known_value(getattr(point, self.on).value))

    def expected(self, size: float = 1.0) -> Estimate:
        """What the best point earns, with the luck of being chosen taken off."""
        curve = self.curve(size)
        shrunk = shrunk_relative_ctrs({i: p.buckets(self.on) for i, p in enumerate(curve)})
        return shrunk[curve.index(self.best(size))]

    def at_edge(self, size: float = 1.0) -> tuple[str, ...]:
        """The parameters whose best value is the lowest or the highest of those tried."""
        best, curve = self.best(size), self.curve(size)
        return tuple(
            name
            for name, value in best.parameters.items()
            for tried in [{point.parameters.get(name, value) for point in curve}]
            if len(tried) > 1 and value in (min(tried), max(tried))
        )

    def differs(self, size: float = 1.0) -> bool:
        """Whether any point is surely worse than the best in what was tuned on."""
        curve = self.curve(size)
        best = curve.index(self.best(size))
        return any(
            claim.sure and claim.value > 0 for claim in _claims(curve, best, self.on).values()
        )

    @cached_property
    def _best(self) -> dict[float, Point]:
        found = recommend([_tried(point, self.on) for point in self.points], self.scale)
        return {
            size: _cheapest(self.curve(size), found[self.policy, size], self.on)
            for size in self.sizes
        }

    def table(self) -> Table:
        """A row for every point and bucket, as an Arrow table."""
        import pyarrow as pa

        rows = [
            {
                "policy": point.policy,
                "size": point.size,
                **point.parameters,
                "bucket": bucket,
                "relative_ctr": estimate.value,
                "low": estimate.interval.low,
                "high": estimate.interval.high,
                "repeats": len(point.outcomes),
                "seconds": sum(outcome.seconds for outcome in point.outcomes),
                "chosen": point is self.best(point.size),
            }
            for point in self.points
            for bucket in (*BUCKETS, TOTAL)
            for estimate in [getattr(point, bucket)]
        ]
        return pa.Table.from_pylist(rows)


def tuning_of(
    policy: str,
    on: str,
    outcomes: Sequence[Outcome],
    learning_share: float = LEARNING_SHARE,
    widened: tuple[str, ...] = (),
    scale: float = 1.0,
) -> Tuning:
    """The curves that outcomes make: those of one size and parameter are one point."""
    cells: dict[tuple[float, tuple[tuple[str, float], ...]], list[Outcome]] = {}
    for outcome in outcomes:
        cells.setdefault((outcome.run.size, tuple(outcome.run.numbers.items())), []).append(outcome)
    points = [
        Point(
            policy=policy,
            size=size,
            parameters=dict(parameters),
            deployment=mean_relative_ctr([each.bucket("deployment") for each in found]),
            learning=mean_relative_ctr([each.bucket("learning") for each in found]),
            total=mean_relative_ctr([bucket_of(each, TOTAL, learning_share) for each in found]),
            learning_share=learning_share,
            outcomes=tuple(found),
        )
        for (size, parameters), found in cells.items()
    ]
    return Tuning(policy, on, tuple(points), learning_share, widened, scale)


def _tried(point: Point, on: str) -> TriedPoint:
    return TriedPoint(
        policy=point.policy,
        size=point.size,
        parameters=point.parameters,
        value=getattr(point, on).value,
        variance=log_variance(point.buckets(on)),
        learning=point.learning.value,
    )


def _claims(curve: Sequence[Point], over: int, bucket: str) -> dict[int, Claim]:
    """How much more the point at one place earns than each of the others, all at once."""
    runs = {i: point.buckets(bucket) for i, point in enumerate(curve)}
    pairs = [(over, other) for other in runs if other != over]
    found = simultaneous_lifts(runs, pairs)
    return {other: found[over, other] for _, other in pairs}


def _cheapest(curve: Sequence[Point], found: Recommendation, on: str) -> Point:
    """The recommended point, or one that is surely better while learning and not surely worse."""
    best = next(
        i for i, point in enumerate(curve) if dict(point.parameters) == dict(found.parameters)
    )
    if on != "deployment" or len(curve) < 2 or len({len(p.outcomes) for p in curve}) > 1:
        return curve[best]  # what is learned at counts already
    worse = {i for i, claim in _claims(curve, best, on).items() if claim.sure and claim.value > 0}
    cheaper = [
        i
        for i, claim in _claims(curve, best, "learning").items()
        if claim.sure and claim.value < 0 and i not in worse
    ]
    return curve[max([best, *cheaper], key=lambda i: known_value(curve[i].learning.value))]


def known_value(value: float) -> float:
    """A value to compare by: what is not known is the lowest."""
    return value if value == value else float("-inf")
