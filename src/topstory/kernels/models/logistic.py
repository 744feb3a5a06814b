"""A linear model of log-odds, around any of the linear models: its arithmetic is theirs.

With η the article's log-odds as estimated at an impression, p = 1/(1 + e^−η) and
κ = max(p(1 − p), 10⁻³), a trial of payoff r is a Newton step on the likelihood of a click:

    shown:  A += κ x xᵀ    b += (κη − p) x        paid:  b += r x

So it is two trials of the linear model: the context √κ·x shown, with (κη − p)/√κ as its payoff;
and r paid for x. b is linear in r, so payoffs may come late, in parts and in any order. What an
impression adds depends on the payoffs that were known then.
"""

from typing import Any, NamedTuple

import numpy as np

from topstory.kernels.algebra import dot, multiply
from topstory.kernels.compilation import Floats, inlined, specialised
from topstory.kernels.contexts import spread
from topstory.kernels.event_features import scaled
from topstory.kernels.models.general_hybrid import GeneralHybrid, reach_out
from topstory.kernels.models.model import (
    enter,
    estimate,
    paid,
    shown,
    takes,
    weigh,
    width,
)

LEAST_CURVATURE = 1e-3  # of an article that is hardly ever, or nearly always, clicked


class Logistic(NamedTuple):
    """A linear model's state, which holds log-odds, and room to work in."""

    linear: Any
    room: Floats  # (3, d)


def _is_logistic(state: Any) -> bool:
    return state.instance_class is Logistic


@inlined
def probability(log_odds: float) -> float:
    """1/(1 + e^−η)."""
    return float(1.0 / (1.0 + np.exp(-log_odds)))


def current(linear: Any, a: int, x: Any, segment: int, room: Floats) -> float:
    """The article's log-odds, from what was learned alone.

    Hybrid's forms S and v are caches: their last bits depend on which pools were scored.
    """
    raise NotImplementedError("called from kernels only")


@specialised(current, inline=False)
def _current(linear: Any, a: Any, x: Any, segment: Any, room: Any) -> Any:
    def learned(linear: Any, a: Any, x: Any, segment: Any, room: Any) -> float:
        return float(estimate(linear, a, x, segment))

    def cached(linear: Any, a: Any, x: Any, segment: Any, room: Any) -> float:
        u, features = room[1], linear.features[a]
        spread(x, room[0])
        multiply(linear.A_inverse[a], room[0], u)
        m, total = features.shape[0], 0.0
        for i in range(u.shape[0]):
            common = 0.0
            for j in range(m):
                common += linear.beta[i * m + j] * features[j]
            total += u[i] * (linear.b[a, i] + linear.ridge * common)
        return total

    def general(linear: Any, a: Any, x: Any, segment: Any, room: Any) -> float:
        reach_out(linear, a, x)
        return dot(linear.room[1], linear.b[a]) + dot(linear.shared_room[0], linear.beta)

    if linear.instance_class is GeneralHybrid:
        return general
    return cached if hasattr(linear.instance_class, "left_at") else learned


@specialised(estimate, inline=True)
def _estimate(state: Any, a: Any, x: Any, segment: Any) -> Any:
    if not _is_logistic(state):
        return None
    return lambda state, a, x, segment: estimate(state.linear, a, x, segment)


@specialised(width, inline=True)
def _width(state: Any, a: Any, x: Any, segment: Any) -> Any:
    if not _is_logistic(state):
        return None
    return lambda state, a, x, segment: width(state.linear, a, x, segment)


@specialised(takes, inline=True)
def _takes(state: Any, a: Any, x: Any) -> Any:
    if not _is_logistic(state):
        return None
    return lambda state, a, x: takes(state.linear, a, x)


@specialised(enter, inline=True)
def _enter(state: Any, slots: Any, start: Any, stop: Any) -> Any:
    if not _is_logistic(state):
        return None
    return lambda state, slots, start, stop: enter(state.linear, slots, start, stop)


@specialised(shown, inline=False)
def _shown(state: Any, a: Any, x: Any, segment: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any) -> None:
        step(state, a, x, segment, 0.0, 1.0)

    return body if _is_logistic(state) else None


@specialised(paid, inline=False)
def _paid(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any, payoff: Any) -> None:
        paid(state.linear, a, x, segment, payoff)

    return body if _is_logistic(state) else None


@specialised(weigh, inline=False)
def _weigh(state: Any, a: Any, x: Any, segment: Any, payoff: Any, weight: Any) -> Any:
    def body(state: Any, a: Any, x: Any, segment: Any, payoff: Any, weight: Any) -> bool:
        if not takes(state.linear, a, x):
            return False
        step(state, a, x, segment, payoff, weight)
        return True

    return body if _is_logistic(state) else None


@inlined
def step(state: Any, a: int, x: Any, segment: int, payoff: float, weight: float) -> None:
    """An impression and a payoff, both `weight` times."""
    log_odds = current(state.linear, a, x, segment, state.room)
    p = probability(log_odds)
    curvature = max(p * (1.0 - p), LEAST_CURVATURE)
    scale = np.sqrt(weight * curvature)
    values = state.room[0]
    spread(x, values)
    trial = scaled(x, values, scale, state.room[2])
    shown(state.linear, a, trial, segment)
    paid(state.linear, a, trial, segment, weight * (curvature * log_odds - p + payoff) / scale)
