"""A replay as a figure: the mean payoff of both buckets over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from topstory.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"deployment": "#2b6cb0", "learning": "#1f9e83"}


def draw_replay(
    curves: Mapping[str, Sequence[tuple[Any, float]]],
    ends: Mapping[str, tuple[float, float, float]],
    base: float,
    rate: str,
    axes: Axes | None = None,
) -> Axes:
    """Curves over time, each with its overall value and interval, and the random policy's value.

    Args:
        curves: by bucket, (when, value) of each stretch of time.
        ends: by bucket, the value over all time, and its interval.
        base: the random policy's.
        rate: what the values are called.
        axes: where to draw; by default on a new figure.
    """
    require("report")
    import matplotlib.pyplot as plt

    drawn = plt.subplots(figsize=(8, 4))[1] if axes is None else axes
    for bucket, points in curves.items():
        value, low, high = ends[bucket]
        colour = COLOURS.get(bucket, "#555555")
        label = f"{bucket}: {value:.4g} [{low:.4g}, {high:.4g}]"
        drawn.plot([at for at, _ in points], [v for _, v in points], color=colour, label=label)
        drawn.axhspan(low, high, color=colour, alpha=0.12, linewidth=0)
    drawn.axhline(base, color="#8b909a", linestyle="--", label=f"random: {base:.4g}")
    drawn.set_ylabel(rate)
    drawn.legend(frameon=False)
    drawn.figure.autofmt_xdate()
    return drawn
