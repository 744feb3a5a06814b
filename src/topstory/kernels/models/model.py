"""What every model's state answers inside the kernels. Each model's file gives its own bodies.

`a` is the article's slot in the state's arrays, `x` and `segment` the user's context and segment.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Floats, Slots, compiled, inlined, specialised
from topstory.kernels.contexts import Dense, load, rolled
from topstory.kernels.event_features import Context
from topstory.kernels.models.tally import recount


def estimate(state: Any, a: int, x: Any, segment: int) -> float:
    """The payoff to expect."""
    raise NotImplementedError("called from kernels only")


def width(state: Any, a: int, x: Any, segment: int) -> float:
    """How unsure the estimate is: one standard deviation, up to the noise's scale."""
    raise NotImplementedError("called from kernels only")


def widest(state: Any, a: int, x: Any) -> float:
    """What `width` never exceeds, for little work; NaN if no such bound is known.

    Any comparison with NaN is false, so the compiler leaves out what would follow from it.
    """
    raise NotImplementedError("called from kernels only")


@specialised(widest, inline=True)
def _not_bounded(state: Any, a: Any, x: Any) -> Any:
    if has_costly_width(state, x):
        return None
    return lambda state, a, x: np.nan


def has_costly_width(state: Any, x: Any) -> bool:
    """Whether these types are those of one regression for each article, and of a long context."""
    forms = hasattr(state.instance_class, "S") and not hasattr(state.instance_class, "left_at")
    return bool(forms and x.instance_class is Dense and not len(x[1]))


def shown(state: Any, a: int, x: Any, segment: int) -> None:
    """The first half of a trial: the article was shown."""
    raise NotImplementedError("called from kernels only")


def paid(state: Any, a: int, x: Any, segment: int, payoff: float) -> None:
    """The second half of a trial: a payoff came, now or later, once or several times."""
    raise NotImplementedError("called from kernels only")


@inlined
def comparable(score: float) -> float:
    """The score to 40 of its 53 bits: what articles are compared by.

    Scores that are equal on paper differ in their last bits once they were computed in different
    orders. To 12 digits they are equal, so that chance breaks the tie, not rounding.
    """
    if not np.isfinite(score):
        return score
    scaled = score * 8193.0  # 2**13 + 1: Veltkamp's splitting
    return scaled - (scaled - score)


def takes(state: Any, a: int, x: Any) -> bool:
    """Whether the state's arithmetic holds after such a trial; if not, it needs another form."""
    raise NotImplementedError("called from kernels only")


@specialised(takes, inline=True)
def _always_takes(state: Any, a: Any, x: Any) -> Any:
    if any(hasattr(state.instance_class, field) for field in ("A", "L0", "linear")):
        return None  # a matrix whose inverse is kept, or what may lose its digits
    return lambda state, a, x: True


@compiled
def learn(state: Any, a: int, x: Any, segment: int, payoff: float) -> bool:
    """Take in one trial whole: its two halves. False: the state does not take it."""
    trial = rolled(x, a)
    if not takes(state, a, trial):
        return False
    shown(state, a, trial, segment)
    if payoff != 0.0:
        paid(state, a, trial, segment, payoff)
    return True


@compiled
def learn_shown(state: Any, a: int, x: Any, segment: int) -> bool:
    """The first half alone. False: the state does not take it."""
    trial = rolled(x, a)
    if not takes(state, a, trial):
        return False
    shown(state, a, trial, segment)
    return True


@compiled
def learn_paid(state: Any, a: int, x: Any, segment: int, payoff: float) -> None:
    """The second half alone."""
    paid(state, a, rolled(x, a), segment, payoff)


@compiled
def learn_halves(
    state: Any, slots: Slots, contexts: Floats, segments: Slots, room: Context, payoffs: Floats
) -> int:
    """Many halves in their order: an impression where the payoff is NaN, else a payoff.

    The same arithmetic as one call for each, hence the same bits. To hand a state to a kernel
    costs more than to teach it, so many share one call. No segments: there is but one. Returns how
    many were learned: fewer than all if the state does not take the next one.
    """
    for t in range(slots.shape[0]):
        x = rolled(load(contexts, t, room), slots[t])
        segment = segments[t] if segments.shape[0] else 0
        if not np.isnan(payoffs[t]):
            paid(state, slots[t], x, segment, payoffs[t])
        elif takes(state, slots[t], x):
            shown(state, slots[t], x, segment)
        else:
            return t
    return len(slots)


@compiled
def learn_trials(
    state: Any,
    slots: Slots,
    contexts: Any,
    start: int,
    segments: Slots,
    room: Context,
    payoffs: NDArray[np.float32],
) -> int:
    """Whole trials in their order: the same arithmetic as `learn` one by one, hence the same bits.

    The first one's context is row `start` of `contexts`. Returns how many were learned: fewer than
    all if the state does not take the next one.
    """
    for t in range(slots.shape[0]):
        x = rolled(load(contexts, start + t, room), slots[t])
        if not takes(state, slots[t], x):
            return t
        segment = segments[t] if segments.shape[0] else 0
        payoff = np.float64(payoffs[t])
        shown(state, slots[t], x, segment)
        if payoff != 0.0:
            paid(state, slots[t], x, segment, payoff)
    return len(slots)


def weigh(state: Any, a: int, x: Any, segment: int, payoff: float, weight: float) -> bool:
    """A whole trial that counts `weight` times. False: the state does not take it."""
    raise NotImplementedError("called from kernels only")


@specialised(weigh, inline=False)
def _weigh_squares(state: Any, a: Any, x: Any, segment: Any, payoff: Any, weight: Any) -> Any:
    """In a regression: √weight times the context, and √weight times the payoff."""

    def body(state: Any, a: Any, x: Any, segment: Any, payoff: Any, weight: Any) -> bool:
        scale = np.sqrt(weight)
        for i in range(x.values.shape[0]):
            x.values[i] *= scale
        if not takes(state, a, x):
            return False
        shown(state, a, x, segment)
        if payoff != 0.0:
            paid(state, a, x, segment, scale * payoff)
        recount(state, payoff, weight, scale)
        return True

    regresses = any(hasattr(state.instance_class, field) for field in ("A", "L", "rows"))
    return body if regresses else None


@compiled
def learn_weighted(
    state: Any,
    slots: Slots,
    contexts: Floats,
    segments: Slots,
    room: Context,
    payoffs: NDArray[np.float32],
    weights: Floats,
) -> int:
    """The same with trials that count as often as `weights` say; contexts are dense."""
    for t in range(slots.shape[0]):
        x = rolled(load(contexts, t, room), slots[t])
        segment = segments[t] if segments.shape[0] else 0
        if not weigh(state, slots[t], x, segment, np.float64(payoffs[t]), weights[t]):
            return t
    return len(slots)


def enter(state: Any, slots: Slots, start: int, stop: int) -> None:
    """From now on the pool slots[start:stop] is scored next: bring it up to date."""
    raise NotImplementedError("called from kernels only")


@compiled
def refresh(state: Any, slots: Slots) -> None:
    """Bring a pool up to date that another process will score."""
    enter(state, slots, 0, slots.shape[0])


@specialised(enter, inline=True)
def _always_up_to_date(state: Any, slots: Any, start: Any, stop: Any) -> Any:
    if hasattr(state.instance_class, "left_at") or hasattr(state.instance_class, "linear"):
        return None  # it keeps some articles up to date, not all
    return lambda state, slots, start, stop: None
