"""How policies are drawn in every figure: the model gives the colour, the explorer the mark."""

from __future__ import annotations

from typing import NamedTuple

from topstory.policies.registry import REGISTRY


class Style(NamedTuple):
    """One policy's colour and marks."""

    colour: str
    dash: str  # of a line
    opacity: float  # of a bar
    marker: str  # of a point in Figure 3
    marker_colour: str


def style(policy: str) -> Style:
    """How a policy is drawn.

    >>> style("linucb-hybrid").dash, style("egreedy").marker
    ('solid', 'x-thin')
    """
    entry = REGISTRY[policy]
    drawn = entry.explorer
    return Style(entry.model.colour, drawn.dash, drawn.opacity, drawn.marker, drawn.marker_colour)
