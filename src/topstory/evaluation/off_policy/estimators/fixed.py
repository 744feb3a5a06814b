"""The base of estimators that have no number to choose."""

from typing import ClassVar, Self

from topstory.evaluation.off_policy.estimators.weighted_events import WeightedEvents


class FixedEstimator:
    """Nothing is chosen by the log."""

    biased: ClassVar[bool] = False

    @property
    def parameter(self) -> float | None:
        """None."""
        return None

    def fitted(self, events: WeightedEvents) -> Self:
        """Itself."""
        return self
