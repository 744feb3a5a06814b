"""Logistic models: click rates that stay between 0 and 1, with widths on the scale of log-odds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from topstory.events import EventLog
from topstory.kernels.compilation import Floats
from topstory.kernels.models.logistic import Logistic
from topstory.models.linear import PAPER, LinearModel
from topstory.models.model import Model
from topstory.models.priors.sums import ArticleSums

RATE = 0.05  # of clicks, before any trial


class LogisticModel(LinearModel):
    """What both have in common: a linear model of log-odds η, where P(click) = 1/(1 + e^−η)."""

    additive = False
    rate: float

    @property
    def kernel_state(self) -> Any:
        """The state, with room to take logistic steps in."""
        return Logistic(self.state, np.zeros((3, self.state.b.shape[1])))

    @property
    def start(self) -> float:
        """The log-odds of a click before any trial."""
        return math.log(self.rate / (1.0 - self.rate))

    def expected(self, scores: Floats, widths: Floats) -> tuple[Floats, Floats]:
        """Probabilities of a click, and how unsure they are: a width of log-odds times p(1 − p)."""
        with np.errstate(over="ignore"):  # log-odds below −709: a chance of 0
            p = np.asarray(1.0 / (1.0 + np.exp(-scores)))
        return p, p * (1.0 - p) * widths

    def check_payoffs(self, least: float, most: float) -> None:
        """ValueError for payoffs that are no clicks."""
        if least < 0.0 or most > 1.0:
            raise ValueError(
                f"the {self.name} model takes payoffs from 0 to 1, such as clicks, got "
                f"{least if least < 0.0 else most:g}; divide them by the largest, or take a linear "
                "model"
            )

    def restarted(self, **changes: Any) -> Any:
        """Refused: each step depends on what was known before."""
        return Model.restarted(self, **changes)

    def sums_of(self, log: EventLog, weights: Floats | None = None) -> ArticleSums:
        """Refused: each step depends on what was known before."""
        return Model.sums_of(self, log, weights)


def plain_ridge(ridge: Any) -> float | None:
    """A ridge that is a number; None is the paper's."""
    if ridge == PAPER:
        return None
    if isinstance(ridge, str):
        raise ValueError(f"the ridge of a logistic model is a number or {PAPER!r}, got {ridge!r}")
    return None if ridge is None else float(ridge)


def click_rate(rate: float) -> float:
    """A click rate that has log-odds."""
    if not 1e-9 <= rate <= 1.0 - 1e-9:
        raise ValueError(f"rate must be a click rate between 0 and 1, got {rate!r}")
    return float(rate)
