"""What an earlier log teaches about articles that it never showed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from os import PathLike

import numpy as np

from topstory.kernels.compilation import Floats

ARRAYS = ("mean", "precision", "A0", "b0", "averages")
NUMBERS = ("ridge", "shared_ridge", "noise", "weight")


@dataclass(frozen=True, eq=False, repr=False)
class Prior:
    """Where a model starts, for each kind of model; `ts.fit_prior` learns it from a log.

    The unit of a precision is a trial, as that of a ridge is: the noise is divided out.

    >>> Prior.load("nowhere")
    Traceback (most recent call last):
    ...
    FileNotFoundError: No such file or directory: nowhere
    """

    mean: Floats  # (d,) disjoint: of an article's coefficients θ
    precision: Floats  # (d, d) disjoint: the inverse of their covariance
    ridge: float  # hybrid: the precision of an article's own part
    shared_ridge: float  # hybrid: that of the shared part before any event
    A0: Floats  # (dm, dm) hybrid: what the log's events add to A0; (0, 0) if dm is too large
    b0: Floats  # (dm,) hybrid: what they add to b0
    averages: Floats  # (1 + segments, 2) mean payoff and its weight in trials; first of all users
    noise: float  # the variance of a payoff around its expectation
    weight: float  # κ: how much of it held in the second half of the log, fitted on the first
    events: int  # that it was learned from
    articles: int
    feature_model: str | None = None  # that made the log's contexts; None: unknown, or none
    event_features: int = 0  # the last of a context's d numbers that hybrid takes into f

    @classmethod
    def of_articles(cls, mean: Floats, precision: Floats, noise: float, events: int) -> Prior:
        """What a disjoint model finds out by itself: nothing is known of other models."""
        none = np.zeros(0)
        shared = (np.zeros((0, 0)), none)
        return cls(mean, precision, 1.0, 1.0, *shared, np.zeros((0, 2)), noise, 1.0, events, 0)

    def __repr__(self) -> str:
        return (
            f"<Prior: of {self.events:,} events and {self.articles:,} articles, d = "
            f"{self.dimension}, weight {self.weight:g}>"
        )

    @property
    def dimension(self) -> int:
        """Features of a context."""
        return len(self.mean)

    @property
    def features(self) -> int:
        """Numbers of f, the constant and the event's included; 0 if hybrid has no part in this."""
        return len(self.b0) // (self.dimension - self.event_features)

    def shared(self, weight: float) -> tuple[Floats, Floats]:
        """A0 and b0 of a hybrid model that starts from this share of what the log taught."""
        start = self.shared_ridge * np.eye(len(self.b0))
        return start + weight * self.A0, weight * self.b0

    def own(self, weight: float) -> tuple[Floats, Floats]:
        """A and b of a disjoint model's article: between the paper's start, and this prior."""
        pulled = weight * self.precision
        return pulled + (1.0 - weight) * np.eye(self.dimension), pulled @ self.mean

    def check_dimension(self, dimension: int) -> None:
        """ValueError if contexts have another number of features."""
        if dimension != self.dimension:
            raise ValueError(
                f"the prior was learned from contexts of {self.dimension} features, but a context "
                f"has {dimension} here; fit one on a log with the same features"
            )

    def __deepcopy__(self, memo: object) -> Prior:
        return self  # nothing of it ever changes

    def equals(self, other: Prior) -> bool:
        """Whether both are the same to the bit."""
        return all(
            np.array_equal(getattr(self, each.name), getattr(other, each.name))
            if each.name in ARRAYS
            else getattr(self, each.name) == getattr(other, each.name)
            for each in fields(self)
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to one safetensors file, whole or not at all."""
        from topstory.models.priors.storage import save

        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Prior:
        """The prior that `save` wrote, exact to the bit."""
        from topstory.models.priors.storage import load

        return load(path)
