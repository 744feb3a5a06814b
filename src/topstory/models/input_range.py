"""Which numbers models take: a range in which their arithmetic cannot overflow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# Contexts, article features, offsets and payoffs, by absolute value. Nanoseconds since 1970 and
# 64-bit ids fit; the largest product that a model forms of such numbers stays below 1e200.
MAX_MAGNITUDE = 1e20
MIN_RIDGE, MAX_RIDGE = 1e-12, 1e12


class NotFiniteError(ValueError):
    """A score is not a number. Nothing was chosen, counted or learned because of it.

    >>> issubclass(NotFiniteError, ValueError)
    True
    """

    def __init__(self, policy: object, article: str | None, where: str = "") -> None:
        super().__init__(
            f"{policy}: the score of article {article!r} is not a number{where}; scale the "
            "features to about 1, use a larger ridge, or replace the policy if it was stored "
            "in this state"
        )


class ScaleError(ValueError):
    """Numbers are so large beside the ridge that what was learned would lose its digits.

    >>> issubclass(ScaleError, ValueError)
    True
    """

    def __init__(self, model: str, what: str) -> None:
        super().__init__(
            f"the {model} model cannot hold {what}: contexts are so large beside its ridge that "
            "what it learned would lose its digits; scale them to about 1, or use a larger ridge"
        )


def in_range(values: npt.ArrayLike) -> bool:
    """Whether all numbers are finite, and no larger than models take.

    >>> in_range([0.5, -3.0]), in_range([1e21]), in_range([np.nan])
    (True, False, False)
    """
    return bool((np.abs(values) <= MAX_MAGNITUDE).all())


def payoff_in_range(payoff: float) -> float:
    """A payoff as a number; ValueError if models cannot take it."""
    try:
        amount = float(payoff)
    except (TypeError, ValueError):
        raise ValueError(f"a payoff is a finite number, got {payoff!r}") from None
    if not -MAX_MAGNITUDE <= amount <= MAX_MAGNITUDE:
        raise ValueError(f"a payoff is a finite number, at most {MAX_MAGNITUDE:g}, got {payoff!r}")
    return amount
