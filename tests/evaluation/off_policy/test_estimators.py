"""Each estimator is that of the Open Bandit Pipeline, and a plain sum over events."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.off_policy.open_bandit_pipeline import OBP

import topstory as ts
from topstory.evaluation.off_policy.estimators.dr_shrunk import DrShrunk
from topstory.evaluation.off_policy.estimators.registry import ESTIMATORS, estimator_called
from topstory.evaluation.off_policy.estimators.switch import Switch
from topstory.evaluation.off_policy.estimators.weighted_events import WeightedEvents
from topstory.evaluation.off_policy.weighting.payoff_model import PayoffModel
from topstory.evaluation.off_policy.weighting.targets import target_of
from topstory.evaluation.off_policy.weighting.weights import weighted
from topstory.events.formats.importing import import_log

FILES = Path(__file__).parents[2] / "fixtures" / "open_bandit" / "men"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> ts.EventLog:
    """300 real rows, with clicks added at random: the cut has almost none."""
    folder = tmp_path_factory.mktemp("obd") / "log"
    import_log("obd", FILES / "men.csv", folder)
    real = ts.EventLog.read(folder)
    random = np.random.default_rng(0)
    sizes = real.pool_sizes[real.pool]
    return ts.EventLog.from_arrays(
        real.users,
        real.pools,
        real.pool,
        real.shown,
        random.random(len(real)) < 0.2,
        propensity=(random.uniform(0.3, 3.0, len(real)) / sizes).clip(max=1.0),
    )


@pytest.fixture(scope="module")
def events(log: ts.EventLog) -> WeightedEvents:
    policy = ts.train(ts.policy("softmax-disjoint", temperature=0.1), log, held_out=0).policy
    return weighted(log, target_of(policy, log, greedy=False), PayoffModel(log))


def test_the_events_are_those_of_the_log(log: ts.EventLog, events: WeightedEvents) -> None:
    assert len(events.weight) == len(log) == 300
    assert events.weight.min() < 0.5 < 2 < events.weight.max()


@pytest.mark.parametrize(
    "estimator",
    [*(ESTIMATORS[name] for name in ("ips", "snips", "dm", "dr")), Switch(1.5), DrShrunk(2.0)],
    ids=lambda each: each.name,
)
def test_it_agrees_with_the_open_bandit_pipeline(
    log: ts.EventLog, events: WeightedEvents, estimator: Switch
) -> None:
    terms = estimator.terms(events)
    found = terms.numerator.sum() / terms.denominator.sum()
    # What obp is given: the payoff, π(shown), p, r̂ of the shown article, and Σ π r̂.
    propensity = log.propensity.astype(np.float64)
    expected = OBP[estimator.name](
        events.payoff, events.weight * propensity, propensity, events.predicted, events.direct
    )
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["switch", "dr-shrunk"])
def test_without_heavy_weights_nothing_is_shrunk(name: str) -> None:
    """Weights of 1 and a payoff model that is off: any shrinking adds bias and no precision."""
    random = np.random.default_rng(1)
    ones, payoff = np.ones(5000), (random.random(5000) < 0.3).astype(float)
    fitted = estimator_called(name).fitted(WeightedEvents(ones, payoff, 0 * ones, 0 * ones))
    terms = fitted.terms(WeightedEvents(ones, payoff, 0 * ones, 0 * ones))
    assert terms.numerator.mean() == pytest.approx(payoff.mean())


@pytest.mark.parametrize("name", ["switch", "dr-shrunk"])
def test_a_few_huge_weights_are_shrunk(name: str) -> None:
    """A perfect model of payoffs: one event in a thousand with a weight of 500 is only noise."""
    random = np.random.default_rng(2)
    weight = np.where(np.arange(5000) % 1000 == 0, 500.0, 0.5)
    payoff = (random.random(5000) < 0.3).astype(float)
    events = WeightedEvents(weight, payoff, np.full(5000, 0.3), np.full(5000, 0.3))
    terms = estimator_called(name).fitted(events).terms(events)
    plain = ESTIMATORS["dr"].terms(events)
    assert terms.numerator.std() < 0.3 * plain.numerator.std()
    assert terms.numerator.mean() == pytest.approx(0.3, abs=0.02)


def test_an_unknown_estimator_is_an_error_that_lists_them() -> None:
    with pytest.raises(ValueError, match="no estimator is called 'mean'; there are snips, ips, dr"):
        estimator_called("mean")
