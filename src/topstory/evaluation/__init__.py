"""What would have happened: replay, how sure it is, and with which parameter."""

from topstory.evaluation.comparison import Comparison, compare
from topstory.evaluation.intervals import Interval
from topstory.evaluation.prepared_log import NotUniformWarning
from topstory.evaluation.repeats import Estimate, mean_lift, mean_relative_ctr
from topstory.evaluation.replay import replay
from topstory.evaluation.result import ArticleResult, Bucket, Lift, Result, Window, lift
from topstory.evaluation.retention import RetentionWarning
from topstory.evaluation.run import Outcome, Run
from topstory.evaluation.runs import cost, play_all
from topstory.evaluation.tuning import Point, Tuning, grid_runs, tune, tuning_of
from topstory.evaluation.warm_start import WarmStart, warm_start

__all__ = [
    "ArticleResult",
    "Bucket",
    "Comparison",
    "Estimate",
    "Interval",
    "Lift",
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
    "grid_runs",
    "lift",
    "mean_lift",
    "mean_relative_ctr",
    "play_all",
    "replay",
    "tune",
    "tuning_of",
    "warm_start",
]
