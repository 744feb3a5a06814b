"""What to expect: each model gives an estimate of an article's payoff for a user, and its width."""

from topstory.models.context_free import ContextFree
from topstory.models.disjoint import DisjointLinear
from topstory.models.hindsight import Hindsight
from topstory.models.hybrid import HybridLinear
from topstory.models.model import Model
from topstory.models.nothing import Nothing
from topstory.models.offset import LinearOffset, fit_offset
from topstory.models.segmented import Segmented
from topstory.models.warm import Warm

__all__ = [
    "ContextFree",
    "DisjointLinear",
    "Hindsight",
    "HybridLinear",
    "LinearOffset",
    "Model",
    "Nothing",
    "Segmented",
    "Warm",
    "fit_offset",
]
