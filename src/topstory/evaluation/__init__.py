"""What would have happened: replay, how sure it is, and with which parameter."""

from topstory.evaluation.comparison import Comparison, compare
from topstory.evaluation.exploration import ExplorationCost, exploration_cost, total_bucket
from topstory.evaluation.grids import grid_runs
from topstory.evaluation.intervals import Interval
from topstory.evaluation.lift import Lift, lift
from topstory.evaluation.mean_bucket import MeanBucket
from topstory.evaluation.next_period import NextPeriod, next_period
from topstory.evaluation.prepared_log import NotUniformWarning
from topstory.evaluation.repeats import Estimate, mean_lift, mean_relative_ctr
from topstory.evaluation.replay import replay
from topstory.evaluation.result import ArticleResult, Bucket, Result, Window
from topstory.evaluation.retention import RetentionWarning
from topstory.evaluation.run import Outcome, Run
from topstory.evaluation.run_errors import RANDOM
from topstory.evaluation.runs import cost, play_all
from topstory.evaluation.simultaneous import Claim, simultaneous_lifts
from topstory.evaluation.tuning import tune
from topstory.evaluation.tuning_curves import Point, Tuning, tuning_of
from topstory.evaluation.warm_start import WarmStart, warm_start
from topstory.evaluation.winner import shrunk_relative_ctrs

__all__ = [
    "RANDOM",
    "ArticleResult",
    "Bucket",
    "Claim",
    "Comparison",
    "Estimate",
    "ExplorationCost",
    "Interval",
    "Lift",
    "MeanBucket",
    "NextPeriod",
    "NotUniformWarning",
    "Outcome",
    "Point",
    "Result",
    "RetentionWarning",
    "Run",
    "Tuning",
    "WarmStart",
    "Window",
    "compare",
    "cost",
    "exploration_cost",
    "grid_runs",
    "lift",
    "mean_lift",
    "mean_relative_ctr",
    "next_period",
    "play_all",
    "replay",
    "shrunk_relative_ctrs",
    "simultaneous_lifts",
    "total_bucket",
    "tune",
    "tuning_of",
    "warm_start",
]
