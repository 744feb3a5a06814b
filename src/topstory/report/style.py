"""How policies are drawn in every figure: the model sets the colour, the explorer the mark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from topstory.policies.entries import ExplorerEntry
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
    colour = entry.model.prior_colour if entry.from_prior else entry.model.colour
    return PolicyStyle(colour, drawn.dash, drawn.opacity, drawn.marker, drawn.marker_colour)


def explorers(policies: Iterable[str]) -> list[ExplorerEntry]:
    """The explorers of some policies, each once.

    >>> [each.marker_name for each in explorers(["egreedy", "ucb", "ucb-seg"])]
    ['Red crosses', 'Blue circles']
    """
    return list(dict.fromkeys(REGISTRY[policy].explorer for policy in policies))
