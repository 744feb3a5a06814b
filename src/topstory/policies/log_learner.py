"""Learning from every event of a log, by compiled kernels or else event by event in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from topstory.events import EventLog
from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.models.model import learn_trials, learn_weighted
from topstory.models.contexts import check_segments, dense_rows, kernel_rows
from topstory.models.model import Model
from topstory.policies.half_life import even_parts, ticks_of
from topstory.policies.policy import Policy

CHUNK_EVENTS = 1 << 16  # between two reports of progress, and two chances to stop


def learn_log(
    policy: Policy,
    log: EventLog,
    weights: Floats | None = None,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Let a policy learn all events of a log in their order, as `policy.learn` would, to the bit.

    Args:
        policy: learns.
        log: what happened; its numbers are in the range that models take.
        weights: (n,) how often each event counts; None: once.
        progress: called with the number of events that were learned, now and then.
    """
    policy.use_contexts_of(log)
    model = policy.model
    check_segments(model, log)
    model.check_payoffs(*payoff_range(log))
    slots = model.add_all(log.articles)
    model.see(log.dimension, log.event_features)
    if not model.compiles:
        _learn_in_python(policy, log, weights, progress)
        return
    shown = slots[log.shown_index]
    users = log.users if log.exact is None else log.exact.users
    payoff = log.payoff if log.exact is None else log.exact.payoff
    for start, stop in _parts(policy, log):
        done = start
        segments = model.segments(users, start, stop)
        while done < stop:
            rest = (shown[done:stop], users, done, segments[done - start :], payoff[done:stop])
            done += _learned(model, *rest, None if weights is None else weights[done:stop])
            if done < stop:  # the next trial needs another prior, or form of the state
                model.renew()
        policy.trials += stop - start
        if progress is not None:
            progress(stop - start)


def _parts(policy: Policy, log: EventLog) -> Iterator[tuple[int, int]]:
    """Chunks of the log; with a half-life such as are in one tick, to which the clock is moved."""
    ticks = None if policy.half_life is None else ticks_of(log, policy.half_life)
    for first in range(0, len(log), CHUNK_EVENTS):
        last = min(first + CHUNK_EVENTS, len(log))
        if ticks is None:
            yield first, last
            continue
        for start, stop in even_parts(ticks[first:last]):
            policy.advance_to(int(ticks[first + start]))
            yield first + start, first + stop


def payoff_range(log: EventLog) -> tuple[float, float]:
    """The least and the largest payoff; 0 and 0 if there is none."""
    return float(log.payoff.min(initial=0.0)), float(log.payoff.max(initial=0.0))


def _learned(
    model: Model,
    slots: Slots,
    users: Any,
    start: int,
    segments: Slots,
    payoff: Any,
    weights: Floats | None,
) -> int:
    """How many trials were learned until the state did not take one."""
    room = model.room(users.shape[1])
    if weights is None:
        rows = kernel_rows(users)
        return learn_trials(model.kernel_state, slots, rows, start, segments, room, payoff)
    dense = dense_rows(users, start, start + len(slots))
    return learn_weighted(model.kernel_state, slots, dense, segments, room, payoff, weights)


def _learn_in_python(
    policy: Policy,
    log: EventLog,
    weights: Floats | None,
    progress: Callable[[int], object] | None,
) -> None:
    """For a model that asks a function of the caller's about each event."""
    if weights is not None:
        raise ValueError(
            f"{policy} asks a function for its offsets, so it cannot learn weighted events; give "
            "the offsets as a table"
        )
    ticks = None if policy.half_life is None else ticks_of(log, policy.half_life)
    for t, event in enumerate(log):
        if ticks is not None:
            policy.advance_to(int(ticks[t]))
        policy.learn(event.user, event.shown, event.payoff)
        if progress is not None:
            progress(1)
