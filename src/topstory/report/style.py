"""How policies are drawn in every figure: the model sets the colour, the explorer the mark."""

from __future__ import annotations

from typing import NamedTuple

from topstory.policies.registry import REGISTRY


class PolicyStyle(NamedTuple):
    """One policy's colour and marks."""

    colour: str
    dash: str  # of a line
    opacity: float  # of a bar
    marker: str  # of a point in Figure 3
    marker_colour: str


def style_of(policy: str) -> PolicyStyle:
    """How a policy is drawn.

    >>> style_of("linucb-hybrid").dash, style_of("egreedy").marker
    ('solid', 'x-thin')
    """
    entry = REGISTRY[policy]
    drawn = entry.explorer
    return PolicyStyle(
        entry.model.colour, drawn.dash, drawn.opacity, drawn.marker, drawn.marker_colour
    )
