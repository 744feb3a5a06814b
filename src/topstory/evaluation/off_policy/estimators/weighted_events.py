"""What an estimator is given, and what it answers."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol, Self

from topstory.kernels.compilation import Floats


class WeightedEvents(NamedTuple):
    """Events with the weight w = π(shown)/p that makes them the policy's, not the log's."""

    weight: Floats  # (n,)
    payoff: Floats  # (n,)
    direct: Floats  # (n,) Σ_a π_a r̂_a: what a model of payoffs expects of the policy; or (0,)
    predicted: Floats  # (n,) r̂ of the article shown; or (0,)

    def part(self, start: int, stop: int) -> WeightedEvents:
        """The events start … stop − 1."""
        return WeightedEvents(*(column[start:stop] for column in self))


class Terms(NamedTuple):
    """What each event adds to the value: Σ numerator / Σ denominator."""

    numerator: Floats
    denominator: Floats


class Estimator(Protocol):
    """Turns weighted events into terms."""

    name: ClassVar[str]
    models_payoffs: ClassVar[bool]  # whether it needs `direct` and `predicted`
    biased: ClassVar[bool]  # by more than vanishes as events grow, if propensities are right

    @property
    def parameter(self) -> float | None:
        """The number that the log chose for it; None: it has none."""

    def fitted(self, events: WeightedEvents) -> Self:
        """The estimator with its number chosen for these events."""

    def terms(self, events: WeightedEvents) -> Terms:
        """What each event adds."""
