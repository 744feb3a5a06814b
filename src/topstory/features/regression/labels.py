"""Clicks to learn from: what they must be, and which of them are held out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

MOST_HELD_OUT = 1_000_000  # events: more tell nothing more


def check_clicks(clicks: npt.NDArray[Any]) -> None:
    """Refuse payoffs that are no clicks."""
    if not len(clicks):
        raise ValueError("the log has no events, so there is nothing to fit")
    low, high = float(clicks.min()), float(clicks.max())
    if low < 0 or high > 1:
        raise ValueError(
            f"the regression needs clicks, payoffs from 0 to 1; got {low:g} to {high:g}: scale them"
        )


def check_mean(mean: float) -> None:
    """Refuse a log where all events are alike.

    >>> check_mean(0.0)
    Traceback (most recent call last):
    ...
    ValueError: no event was clicked, so nothing tells who likes what; give a log with both
    """
    if mean <= 0 or mean >= 1:
        what = "no event was clicked" if mean <= 0 else "every event was clicked"
        raise ValueError(f"{what}, so nothing tells who likes what; give a log with both")


def share_held_out(share: float, events: int) -> float:
    """Of so many events; a million is enough.

    >>> share_held_out(0.1, 1000), share_held_out(0.1, 100_000_000)
    (0.1, 0.01)
    """
    return min(share, MOST_HELD_OUT / max(1, events))


def held_out(seed: int, share: float, events: int, start: int = 0) -> npt.NDArray[np.bool_]:
    """Whether each of the events `start` ... is held out, whoever asks for whichever of them.

    >>> whole = held_out(0, 0.5, 10)
    >>> bool((held_out(0, 0.5, 4, start=6) == whole[6:]).all())
    True
    """
    drawn = np.random.PCG64(seed).advance(start)  # a number for each event
    return np.random.Generator(drawn).random(events) < share
