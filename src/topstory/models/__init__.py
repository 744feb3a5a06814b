"""What to expect: each model gives an estimate of an article's payoff for a user, and its width."""

from topstory.models.context_free import ContextFree as ContextFree
from topstory.models.disjoint import DisjointLinear as DisjointLinear
from topstory.models.hindsight import Hindsight as Hindsight
from topstory.models.hybrid.model import HybridLinear as HybridLinear
from topstory.models.input_range import NotFiniteError as NotFiniteError
from topstory.models.input_range import ScaleError as ScaleError
from topstory.models.logistic.disjoint import LogisticDisjoint as LogisticDisjoint
from topstory.models.logistic.hybrid import LogisticHybrid as LogisticHybrid
from topstory.models.low_rank import LowRankLinear as LowRankLinear
from topstory.models.model import Model as Model
from topstory.models.no_model import NoModel as NoModel
from topstory.models.offset import LinearOffset as LinearOffset
from topstory.models.offset import fit_offset as fit_offset
from topstory.models.priors import Prior as Prior
from topstory.models.priors import fit_prior as fit_prior
from topstory.models.segmented import Segmented as Segmented
from topstory.models.warm import Warm as Warm
