"""How policies look, in every figure: the model gives the colour, the explorer the mark."""

from __future__ import annotations

from typing import NamedTuple

COLOURS = {  # told apart by colour-blind readers too, on light paper and on dark
    "": "#8b909a",
    "warm": "#e08e2b",
    "seg": "#1f9e83",
    "disjoint": "#3f7fdb",
    "hybrid": "#d1477a",
}
CHANCE, CONFIDENCE = "#e0483e", "#3f7fdb"  # the paper's red crosses and blue circles (Figure 3)


class Look(NamedTuple):
    """One policy's colour and marks."""

    colour: str
    guided: bool  # by confidence: ucb, linucb
    dash: str  # of a line
    symbol: str  # of a point


def look(policy: str) -> Look:
    """How a policy is drawn.

    >>> look("linucb-hybrid").dash, look("egreedy").symbol
    ('solid', 'x-thin')
    """
    explorer, _, model = policy.partition("-")
    guided = explorer != "egreedy"
    colour = COLOURS.get(model, COLOURS[""])
    return Look(colour, guided, "solid" if guided else "4px,3px", "circle" if guided else "x-thin")
