"""How policies are drawn in every figure: the model sets the colour, the explorer the mark."""

from __future__ import annotations

from typing import NamedTuple

COLOURS = {  # distinct for colour-blind readers too, on light and dark backgrounds
    "": "#8b909a",
    "warm": "#e08e2b",
    "seg": "#1f9e83",
    "disjoint": "#3f7fdb",
    "hybrid": "#d1477a",
}
CHANCE, CONFIDENCE = "#e0483e", "#3f7fdb"  # the paper's red crosses and blue circles (Figure 3)


class PolicyStyle(NamedTuple):
    """One policy's colour and marks."""

    colour: str
    guided: bool  # explores by confidence: ucb, linucb
    dash: str  # of a line
    symbol: str  # of a point


def style_of(policy: str) -> PolicyStyle:
    """How a policy is drawn.

    >>> style_of("linucb-hybrid").dash, style_of("egreedy").symbol
    ('solid', 'x-thin')
    """
    explorer, _, model = policy.partition("-")
    guided = explorer != "egreedy"
    colour = COLOURS.get(model, COLOURS[""])
    return PolicyStyle(
        colour, guided, "solid" if guided else "4px,3px", "circle" if guided else "x-thin"
    )
