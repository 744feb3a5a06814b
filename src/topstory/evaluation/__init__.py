"""What would have happened: replay, how sure it is, and with which parameter."""

from topstory.evaluation.comparison import Comparison, compare
from topstory.evaluation.exploration import ExplorationCost, exploration_cost, total_bucket
from topstory.evaluation.intervals import Interval
from topstory.evaluation.off_policy.choose import Selection, choose
from topstory.evaluation.off_policy.dr_ns import LearningValue, dr_ns
from topstory.evaluation.off_policy.evaluate import evaluate
from topstory.evaluation.off_policy.plan import Plan, plan
from topstory.evaluation.off_policy.propensities.estimate import (
    PropensityEstimate,
    estimate_propensities,
)
from topstory.evaluation.off_policy.question import NotAnswerable
from topstory.evaluation.off_policy.value import Evaluation, PolicyValue, Quantity
from topstory.evaluation.replays.precompilation import compile_kernels
from topstory.evaluation.replays.prepared_log import (
    EstimatedPropensityWarning,
    NotUniformWarning,
)
from topstory.evaluation.replays.replay import replay
from topstory.evaluation.replays.retention import RetentionWarning
from topstory.evaluation.replays.run import Outcome, Run
from topstory.evaluation.replays.runs import cost, play_all
from topstory.evaluation.replays.warm_start import WarmStart, warm_start
from topstory.evaluation.result import ArticleResult, Bucket, Result, Window
from topstory.evaluation.training import Training, train
from topstory.evaluation.tuning.curves import Point, Tuning, tuning_of
from topstory.evaluation.tuning.grids import grid_runs
from topstory.evaluation.tuning.tune import tune
from topstory.evaluation.uncertainty.lift import Lift, lift
from topstory.evaluation.uncertainty.mean_bucket import MeanBucket
from topstory.evaluation.uncertainty.next_period import NextPeriod, next_period
from topstory.evaluation.uncertainty.repeats import Estimate, mean_lift, mean_relative_ctr
from topstory.evaluation.uncertainty.run_errors import RANDOM
from topstory.evaluation.uncertainty.simultaneous import Claim, simultaneous_lifts
from topstory.evaluation.uncertainty.winner import shrunk_relative_ctrs

__all__ = [
    "RANDOM",
    "ArticleResult",
    "Bucket",
    "Claim",
    "Comparison",
    "Estimate",
    "EstimatedPropensityWarning",
    "Evaluation",
    "ExplorationCost",
    "Interval",
    "LearningValue",
    "Lift",
    "MeanBucket",
    "NextPeriod",
    "NotAnswerable",
    "NotUniformWarning",
    "Outcome",
    "Plan",
    "Point",
    "PolicyValue",
    "PropensityEstimate",
    "Quantity",
    "Result",
    "RetentionWarning",
    "Run",
    "Selection",
    "Training",
    "Tuning",
    "WarmStart",
    "Window",
    "choose",
    "compare",
    "compile_kernels",
    "cost",
    "dr_ns",
    "estimate_propensities",
    "evaluate",
    "exploration_cost",
    "grid_runs",
    "lift",
    "mean_lift",
    "mean_relative_ctr",
    "next_period",
    "plan",
    "play_all",
    "replay",
    "shrunk_relative_ctrs",
    "simultaneous_lifts",
    "total_bucket",
    "train",
    "tune",
    "tuning_of",
    "warm_start",
]
