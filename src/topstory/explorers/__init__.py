"""What to try: each explorer chooses from estimates and widths."""

from topstory.explorers.epsilon_greedy import EpsilonGreedy
from topstory.explorers.explorer import Explorer
from topstory.explorers.greedy import Greedy
from topstory.explorers.uniform import Uniform
from topstory.explorers.upper_confidence import UpperConfidence

__all__ = ["EpsilonGreedy", "Explorer", "Greedy", "Uniform", "UpperConfidence"]
