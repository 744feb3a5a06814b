"""A closer look: what an evaluation rests on, and what would change its conclusion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.off_policy.test_propensities import Site, Uniform

import topstory as ts
from topstory.evaluation.off_policy.estimators.registry import ESTIMATORS
from topstory.evaluation.off_policy.sensitivity import robust_to
from topstory.evaluation.off_policy.weighting.targets import target_of
from topstory.evaluation.off_policy.weighting.weights import weighted


def recorded(events: int = 3_000, factor: float = 1.0) -> ts.EventLog:
    site = Site(events)
    return replace(site.log, recorded_propensity=(site.true * factor).astype(np.float32))


def test_weights_articles_and_estimators_are_those_of_the_evaluation() -> None:
    log = recorded()
    found = ts.evaluate({"uniform": Uniform()}, log, examine=True)
    look = found.examined["uniform"]
    assert sum(each.events for each in look.weights) == pytest.approx(1)
    assert sum(each.weight for each in look.weights) == pytest.approx(1)
    weight = weighted(log, target_of(Uniform(), log, True), None).weight
    for each in look.weights[1:]:
        assert each.events == np.mean((weight > each.low) & (weight <= each.high))
    assert sum(each.wanted for each in look.articles) == pytest.approx(1)
    assert sum(each.shown for each in look.articles) == len(log)
    for name in ESTIMATORS:
        alone = ts.evaluate({"uniform": Uniform()}, log, estimator=name)["uniform"].value
        assert look.estimates[name].value == pytest.approx(alone.value, rel=1e-12)
        assert look.estimates[name].interval == pytest.approx(alone.interval, rel=1e-9)
    assert ts.evaluate({"uniform": Uniform()}, log).examined == {}


def test_right_propensities_weigh_articles_by_1_and_wrong_ones_do_not() -> None:
    """Five standard errors would happen once in two million; rare articles tell little."""
    right = ts.evaluate({"u": Uniform()}, recorded(), examine=True).examined["u"]
    with pytest.warns(ts.NotUniformWarning, match="do not fit the pools"):
        wrong = ts.evaluate({"u": Uniform()}, recorded(factor=0.6), examine=True).examined["u"]
    assert all(abs(each.mean_weight - 1) < 5 * each.error for each in right.articles)
    for one, other in zip(right.articles, wrong.articles, strict=True):
        assert other.mean_weight == pytest.approx(one.mean_weight / 0.6, rel=1e-5)


def test_what_would_change_the_conclusion_is_said() -> None:
    log = recorded(6_000)
    found = ts.evaluate({"u": Uniform()}, log, examine=True).examined["u"]
    events = weighted(log, target_of(Uniform(), log, True), None)
    factor = robust_to(log, events)
    said = " ".join(found.turns)
    assert factor is None or f"factor of {factor:.2f}" in said
    for part in ("largest weights the value is", "By snips, ips and dr"):
        assert part in said


def test_choose_looks_closer_at_its_winner() -> None:
    found = ts.choose(recorded(), policies=["egreedy", "random"], examine=True)
    assert list(found.evaluation.examined) == [found.winner]
