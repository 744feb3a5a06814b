"""What would have happened: replay, and how sure it is."""

from topstory.evaluation.intervals import Interval
from topstory.evaluation.logged import NotUniformWarning
from topstory.evaluation.replay import replay
from topstory.evaluation.result import ArticleResult, Bucket, Lift, Result, Window, lift

__all__ = [
    "ArticleResult",
    "Bucket",
    "Interval",
    "Lift",
    "NotUniformWarning",
    "Result",
    "Window",
    "lift",
    "replay",
]
