"""Average payoffs: one cell for each article, or for each article and user segment.

The paper's ε-greedy and ucb (§5.3 I): estimate = mean payoff, width = 1/√n, infinite when n = 0.
With an offset, the warm start of §5.3 II: estimate = mean + o_aᵀx. The users of an article's trials
are those whom their offset chose, so the mean payoff contains their mean offset already; a
`residual` state averages payoff − offset instead.
"""

from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.compilation import Floats, compiled, inlined, specialised
from topstory.kernels.contexts import linear
from topstory.kernels.models.model import estimate, paid, shown, weigh, width


class Averages(NamedTuple):
    """Sums over trials, (articles, segments) each, and what follows from them."""

    shows: Floats
    total: Floats
    mean: Floats
    spread: Floats
    offset: Floats  # (articles, d), or (0, 0) for none
    bonus: Floats  # (articles,) an offset for the user at hand, or (0,) for none
    learns: bool
    residual: bool  # whether an impression takes the user's offset off the total


@compiled
def update_mean(state: Averages, a: int, segment: int) -> None:
    """Bring a cell's mean and spread up to date with its sums."""
    n = state.shows[a, segment]
    state.mean[a, segment] = state.total[a, segment] / n if n > 0.0 else 0.0
    state.spread[a, segment] = 1.0 / np.sqrt(n) if n > 0.0 else np.inf


@inlined
def offset(state: Averages, a: int, x: Any) -> float:
    """What is added for the user."""
    value = 0.0
    if state.offset.shape[0]:
        value += linear(state.offset, a, x)
    if state.bonus.shape[0]:
        value += state.bonus[a]
    return value


@specialised(estimate, inline=True)
def _estimate(state: Any, a: Any, x: Any, segment: Any) -> Any:
    if state.instance_class is not Averages:
        return None

    def body(state: Any, a: Any, x: Any, segment: Any) -> float:
        return float(state.mean[a, segment] + offset(state, a, x))

    return body


@specialised(width, inline=True)
def _width(state: Any, a: Any, x: Any, segment: Any) -> Any:
    if state.instance_class is not Averages:
        return None
    return lambda state, a, x, segment: state.spread[a, segment]


@specialised(shown, inline=False)
def _shown(state: Any, a: Any, x: Any, segment: Any) -> Any:
    if state.instance_class is not Averages:
        return None

    def body(state: Any, a: Any, x: Any, segment: Any) -> None:
        if state.learns:
            state.shows[a, segment] += 1.0
            if state.residual:
                state.total[a, segment] -= offset(state, a, x)
            update_mean(state, a, segment)

    return body


@specialised(paid, inline=False)
def _paid(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> Any:
    if state.instance_class is not Averages:
        return None

    def body(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> None:
        if state.learns:
            state.total[a, segment] += payoff
            update_mean(state, a, segment)

    return body


@specialised(weigh, inline=False)
def _weigh(state: Any, a: Any, x: Any, segment: Any, payoff: Any, weight: Any) -> Any:
    if state.instance_class is not Averages:
        return None

    def body(state: Any, a: Any, x: Any, segment: Any, payoff: Any, weight: Any) -> bool:
        if state.learns:
            state.shows[a, segment] += weight
            known = offset(state, a, x) if state.residual else 0.0
            state.total[a, segment] += weight * (payoff - known)
            update_mean(state, a, segment)
        return True

    return body
