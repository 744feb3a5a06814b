"""What to try: each explorer chooses from estimates and widths."""

from topstory.explorers.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from topstory.explorers.explorer import Explorer as Explorer
from topstory.explorers.greedy import Greedy as Greedy
from topstory.explorers.uniform import Uniform as Uniform
from topstory.explorers.upper_confidence import UpperConfidence as UpperConfidence
