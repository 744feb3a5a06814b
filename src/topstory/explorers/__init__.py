"""What to try: each explorer chooses from estimates and widths."""

from topstory.explorers.beta_thompson import BetaThompson as BetaThompson
from topstory.explorers.epoch_greedy import EpochGreedy as EpochGreedy
from topstory.explorers.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from topstory.explorers.explorer import Explorer as Explorer
from topstory.explorers.greedy import Greedy as Greedy
from topstory.explorers.inverse_gap import InverseGap as InverseGap
from topstory.explorers.kl_upper_confidence import KLUpperConfidence as KLUpperConfidence
from topstory.explorers.log_upper_confidence import LogUpperConfidence as LogUpperConfidence
from topstory.explorers.softmax import Softmax as Softmax
from topstory.explorers.thompson import Thompson as Thompson
from topstory.explorers.uniform import Uniform as Uniform
from topstory.explorers.upper_confidence import UpperConfidence as UpperConfidence
