"""The answer of a study: which policy to deploy, as a picture and three sentences."""

from __future__ import annotations

from topstory.evaluation.exploration import VISITS
from topstory.report import Answer, Dot, Number
from topstory.report.records import AS_GOOD, RECOMMENDED
from topstory.studies.report.advice import advice, as_good
from topstory.studies.report.candidates import Candidate, Candidates, value, without_luck

QUESTION = "Which policy should we deploy?"


def study_answer(candidates: Candidates) -> Answer:
    """Of all policies with all data, each with the luck of being the best or worst taken off."""
    all_data = candidates.at(max(size for _, size in candidates.tuned))
    top, honest = candidates.advised(), without_luck(all_data)
    sure = any(each.beats_random for each in all_data)  # else none is recommended
    close = as_good(all_data, top)

    def mark(each: Candidate) -> str:
        return "" if not sure else RECOMMENDED if each is top else AS_GOOD if each in close else ""

    scale = VISITS * top.random_rate
    return Answer(
        question=QUESTION,
        sentences=tuple(advice(all_data, top, honest[top])),
        unit=unit(top.binary),
        reference="random articles",
        reference_value=scale if top.random_rate else None,
        dots=tuple(
            Dot(
                each.policy,
                each.name,
                scaled(honest[each], scale),
                None if honest[each].value is None else value(honest[each]) - 1,
                mark(each),
            )
            for each in sorted(all_data, key=lambda each: -value(honest[each]))
        ),
    )


def unit(binary: bool) -> str:
    """What values count.

    >>> unit(True), unit(False)
    ('clicks in 100,000 visits', 'payoff of 100,000 visits')
    """
    return f"clicks in {VISITS:,} visits" if binary else f"payoff of {VISITS:,} visits"


def scaled(number: Number, scale: float) -> Number:
    """A number and its interval, times a scale; None stays.

    >>> scaled(Number(0.5, 0.25, None), 2)
    Number(value=1.0, low=0.5, high=None, sure=None)
    """
    value, low, high = (
        None if end is None else scale * end for end in (number.value, number.low, number.high)
    )
    return Number(value, low, high)
