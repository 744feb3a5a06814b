"""Clicks to learn from: their checks, and which events are held out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

MAX_HELD_OUT_EVENTS = 1_000_000  # more would add nothing


def check_clicks(clicks: npt.NDArray[Any]) -> None:
    """Raise ValueError for payoffs that are not clicks."""
    if not len(clicks):
        raise ValueError("the log has no events, so there is nothing to fit")
    low, high = float(clicks.min()), float(clicks.max())
    if low < 0 or high > 1:
        raise ValueError(
            f"the regression needs clicks, payoffs from 0 to 1; got {low:g} to {high:g}: scale them"
        )


def check_mean(mean: float) -> None:
    """Raise ValueError if all events were clicked, or none.

    >>> check_mean(0.0)
    Traceback (most recent call last):
    ...
    ValueError: no event was clicked, so there are no preferences to learn; give a log with both
    """
    if mean <= 0 or mean >= 1:
        what = "no event was clicked" if mean <= 0 else "every event was clicked"
        raise ValueError(f"{what}, so there are no preferences to learn; give a log with both")


def share_held_out(share: float, events: int) -> float:
    """The share to hold out of so many events; a million is enough.

    >>> share_held_out(0.1, 1000), share_held_out(0.1, 100_000_000)
    (0.1, 0.01)
    """
    return min(share, MAX_HELD_OUT_EVENTS / max(1, events))


def held_out_mask(seed: int, share: float, events: int, start: int = 0) -> npt.NDArray[np.bool_]:
    """Whether each event from `start` on is held out; the same for any range it is asked for.

    >>> whole = held_out_mask(0, 0.5, 10)
    >>> bool((held_out_mask(0, 0.5, 4, start=6) == whole[6:]).all())
    True
    """
    drawn = np.random.PCG64(seed).advance(start)  # a number for each event
    return np.random.Generator(drawn).random(events) < share
