"""Which question a log can answer, and why not, if none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topstory.events import EventLog
from topstory.events.quality.chance import no_chance, one_article_each
from topstory.events.quality.checks import SIGNIFICANCE_LEVEL


class NotAnswerable(ValueError):
    """The log cannot say what another policy would earn; the message says what to do.

    >>> issubclass(NotAnswerable, ValueError)
    True
    """


class Question(NamedTuple):
    """What is asked, and by which method it is answered."""

    method: str  # an estimator
    why: str  # in words


def question_of(log: EventLog) -> Question:
    """What can be asked of a log; NotAnswerable if nobody can know.

    >>> log = EventLog.from_arrays(np.ones((4, 1)), [["a", "b"]], [0] * 4, ["a", "b"] * 2, [0] * 4)
    >>> question_of(log).method
    'snips'
    """
    if not len(log):
        raise NotAnswerable("the log has no events")
    binary = bool(np.isin(log.payoff, (0.0, 1.0)).all())
    method = "snips" if binary else "dr"
    how = (
        "Payoffs are clicks, so events are weighted (snips)."
        if binary
        else "Payoffs are not only 0 and 1, so a model of payoffs takes noise away (dr)."
    )
    if log.propensity_estimate is not None:
        return Question(
            method,
            "The log did not record with what probability it showed articles; they were estimated "
            f"({log.propensity_estimate}). {how}",
        )
    if log.recorded_propensity is not None:
        return Question(method, f"The log recorded with what probability it showed articles. {how}")
    check_choice(log)
    found = log.uniformity()
    if found.p_value < SIGNIFICANCE_LEVEL:
        raise NotAnswerable(
            "this log did not show articles uniformly, and does not say with what probability it "
            f"did (p = {found.p_value:.2g} for uniform). Record the propensities with which "
            "articles are shown (`topstory serve` does), and choose on such a log; or estimate "
            "them with `topstory propensities`"
        )
    return Question(method, f"As far as the log tells, it showed articles uniformly. {how}")


def check_choice(log: EventLog) -> None:
    """NotAnswerable if there was nothing to choose, or each pool always shows one article."""
    if not len(log):
        raise NotAnswerable("the log has no events")
    if not (log.pool_sizes[log.pool] > 1).any():
        raise NotAnswerable(
            "every pool of this log has a single article, so there was nothing to choose"
        )
    if one_article_each(log):
        raise NotAnswerable(no_chance("each pool always shows the same article"))
