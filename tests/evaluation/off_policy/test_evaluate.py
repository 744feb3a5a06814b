"""`ts.evaluate`: fixed policies on a log that another policy wrote."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.off_policy.weighting.test_targets import small_log
from tests.evaluation.test_training import CHANCES, personalised_log

import topstory as ts
from topstory.evaluation.off_policy.estimators.registry import ESTIMATORS

POOL = ["a", "b"]


class Matching:
    """Shows everyone what they like, with probability `share`; 0.5 is uniform."""

    def __init__(self, share: float) -> None:
        self.share = share

    def probabilities(self, user: object, pool: object) -> list[float]:
        kind = int(np.asarray(user)[1])
        return [self.share if place == kind else 1 - self.share for place in range(2)]


def truth(share: float) -> float:
    return float(share * (0.6 + 0.4) / 2 + (1 - share) * (0.2 + 0.1) / 2)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_every_estimator_finds_the_truth(estimator: str, share: float) -> None:
    """20,000 events; three standard errors of the worst, 4,500 effective events: 0.021."""
    found = ts.evaluate(Matching(share), personalised_log(20_000), estimator=estimator)["policy"]
    assert found.value.value == pytest.approx(truth(share), abs=0.021)
    low, high = found.value.interval
    assert low - 0.01 < truth(share) < high + 0.01
    assert high - low < 0.06
    assert found.mean_weight.value == pytest.approx(1.0, abs=0.05)


def test_on_a_uniform_log_snips_is_pool_weighted_replay() -> None:
    log = small_log()
    policy = ts.train(ts.policy("linucb-disjoint"), log[:100], held_out=0).policy
    found = ts.evaluate(policy, log[100:])["policy"]
    replayed = ts.replay(policy, log[100:], size=0).deployment
    assert found.value.value == pytest.approx(replayed.weighted_ctr, abs=1e-12)
    exploring = ts.evaluate(policy, log[100:], bucket="learning")["policy"]
    replayed = ts.replay(policy, log[100:], size=0).learning
    assert exploring.value.value == pytest.approx(replayed.weighted_ctr, abs=1e-12)


def test_the_logging_policy_has_the_value_of_the_log() -> None:
    log = personalised_log(5_000)
    found = ts.evaluate(Matching(0.85), log)
    value = found["policy"]
    assert value.value.value == pytest.approx(log.ctr) == found.logged.value
    assert value.lift.value == pytest.approx(0.0, abs=1e-6)
    assert value.effective_events == pytest.approx(5_000)
    assert value.largest_share == pytest.approx(1 / 5_000)
    assert value.mean_weight.value == pytest.approx(1.0)
    assert value.smallest_lift < 1e-3  # the same payoffs twice differ by nothing
    assert value.cautions == ()


def test_what_the_log_shows_of_a_policy_is_reported() -> None:
    """By plain formulas, for a policy that shows nobody what they like."""
    log = personalised_log(4_000)
    weight = np.where(log.propensity > 0.5, 0.0, 1 / log.propensity.astype(np.float64))
    found = ts.evaluate(Matching(0.0), log)["policy"]
    assert found.effective_events == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert found.largest_share == pytest.approx(weight.max() / weight.sum())
    assert found.mean_weight.value == pytest.approx(weight.mean())
    assert found.value.value == pytest.approx((weight * log.payoff).sum() / weight.sum())
    assert found.lift.value == pytest.approx(found.value.value / log.ctr - 1)
    assert -1 < found.lift.interval.low < found.lift.value < found.lift.interval.high < 0
    assert 0.02 < found.smallest_lift < 0.5


def test_the_baseline_may_be_another_policy() -> None:
    log = personalised_log(4_000)
    both = {"liked": Matching(1.0), "uniform": Matching(0.5)}
    found = ts.evaluate(both, log, baseline="uniform")
    assert found["uniform"].lift.value == 0
    ratio = found["liked"].value.value / found["uniform"].value.value
    assert found["liked"].lift.value == pytest.approx(ratio - 1)
    assert found["liked"].lift.interval.low > 0


def test_a_policy_without_support_is_called_unknown() -> None:
    log = personalised_log(2_000)
    shown = log[log.propensity > 0.5]  # what is not liked was never shown
    with pytest.warns(ts.NotUniformWarning, match="give 1 if every article can be shown"):
        both = ts.evaluate({"none": Matching(0.0), "half": Matching(0.5)}, shown)
    nothing, half = both["none"], both["half"]
    assert math.isnan(nothing.value.value)
    assert nothing.effective_events == 0
    assert "never shows what this policy would show" in nothing.cautions[0]
    # The log that is left has p = 0.85 where 1 would be right, so Σw/n is 0.59 instead of 0.5.
    assert half.unsupported == pytest.approx(1 - 0.5 / 0.85, abs=0.01)
    assert "never shows some of what this policy would show" in half.cautions[0]


def test_a_policy_given_by_name_is_trained_on_the_first_part_and_judged_on_the_rest() -> None:
    log = personalised_log(3_000)
    found = ts.evaluate(["linucb-disjoint", "ucb"], log, train_share=0.4, alpha=0.1)
    assert (found.trained_events, found.events) == (1_200, 1_800)
    policy = ts.train(ts.policy("linucb-disjoint", alpha=0.1), log[:1_200], held_out=0).policy
    alone = ts.evaluate(policy, log[1_200:])["policy"]
    assert found["linucb-disjoint"].value == alone.value
    # An average over users learns from weighted events, or it would prefer what was shown to fans.
    weighted = ts.train(
        ts.policy("ucb", alpha=0.1), log[:1_200], held_out=0, weights="propensity"
    ).policy
    assert found["ucb"].value == ts.evaluate(weighted, log[1_200:])["policy"].value


def test_a_log_that_was_not_shown_uniformly_and_has_no_propensities_warns() -> None:
    random = np.random.default_rng(0)
    log = ts.EventLog.from_arrays(
        np.ones((4000, 1)),
        [POOL],
        np.zeros(4000, int),
        np.where(random.random(4000) < 0.8, "a", "b"),
        np.zeros(4000),
    )
    with pytest.warns(ts.NotUniformWarning, match="every value is biased; estimate them first"):
        ts.evaluate("random", log)


def test_propensities_that_are_wrong_warn() -> None:
    log = personalised_log(2_000)
    wrong = replace(log, recorded_propensity=np.full(2_000, 0.8, np.float32))
    with pytest.warns(ts.NotUniformWarning, match=r"the mean of 1/\(K p\) is 0\.625"):
        ts.evaluate("random", wrong)


def test_where_nothing_was_left_to_chance_nobody_can_know() -> None:
    log = ts.EventLog.from_arrays(
        np.ones((100, 1)), [POOL], np.zeros(100, int), ["a"] * 100, np.zeros(100)
    )
    with pytest.raises(ValueError, match="left nothing to chance: each pool always shows the same"):
        ts.evaluate(Matching(0.5), log)


def test_without_a_click_the_interval_is_not_empty() -> None:
    log = ts.EventLog.from_arrays(
        np.ones((400, 1)), [POOL], np.zeros(400, int), ["a", "b"] * 200, np.zeros(400)
    )
    found = ts.evaluate("random", log)["random"]
    assert found.value.value == 0
    assert 0.005 < found.value.interval.high < 0.02
    assert math.isnan(found.lift.value)
    by_ips = ts.evaluate("random", log, estimator="ips")["random"]
    assert math.isnan(by_ips.value.interval.high)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"policies": {}}, "at least one policy"),
        ({"policies": "random", "bucket": "all"}, "bucket must be 'deployment' or 'learning'"),
        ({"policies": "random", "baseline": "x"}, "baseline must be 'logged' or one of random"),
        ({"policies": "ucb", "train_share": 1.0}, "train_share must be between 0 and 1"),
        ({"policies": "ucb-warm"}, "train it with `topstory train`"),
        ({"policies": "omniscient"}, "replay shows its value"),
        ({"policies": Matching(1.0), "alpha": 0.1}, "alpha: parameters are for policies given by"),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, object], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        ts.evaluate(log=personalised_log(100), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [7, [Matching(1.0)], {"mine": object()}])
def test_what_is_no_policy_is_refused(given: object) -> None:
    with pytest.raises(TypeError, match="polic"):
        ts.evaluate(given, personalised_log(100))  # type: ignore[arg-type]


def test_the_truth_used_above_is_that_of_the_log() -> None:
    assert truth(1.0) == pytest.approx(np.diag(CHANCES).mean())


@pytest.mark.parametrize("estimator", ["switch", "dr-shrunk", "dm"])
def test_a_biased_estimator_has_the_interval_of_dr_stretched_to_hold_its_value(
    estimator: str,
) -> None:
    log = personalised_log(300)
    exact = ts.evaluate(Matching(0.1), log, estimator="dr")["policy"]
    found = ts.evaluate(Matching(0.1), log, estimator=estimator)["policy"]
    for one, other in ((found.value, exact.value), (found.lift, exact.lift)):
        assert one.interval.low == min(other.interval.low, one.value)
        assert one.interval.high == max(other.interval.high, one.value)
        assert one.these_days.low == min(other.these_days.low, one.value)
    assert found.smallest_lift == exact.smallest_lift
    assert any("the interval is that of dr" in caution for caution in found.cautions)


def test_a_log_too_short_for_its_dependence_speaks_of_its_own_days_alone() -> None:
    """Within 40 hours the rate drifts from 0.1 to 0.5: nothing is known of other days."""
    random = np.random.default_rng(0)
    hour = np.arange(8_000) * 40 // 8_000
    log = ts.EventLog.from_arrays(
        np.ones((8_000, 1)),
        [POOL],
        np.zeros(8_000, int),
        random.choice(POOL, 8_000),
        random.random(8_000) < 0.1 + 0.01 * hour,
        timestamps=hour * 3600,
    )
    found = ts.evaluate("random", log)["random"]
    assert found.value.too_short
    assert math.isnan(found.value.interval.low)
    low, high = found.value.best_interval
    assert low < log.ctr < high
    assert high - low < 0.03
    assert found.value.days_needed is not None
    assert found.value.days_needed >= 7
    (said,) = (each for each in found.cautions if "says nothing of other days" in each)
    assert f"a log of {found.value.days_needed} days or more is needed" in said


def test_a_log_of_less_than_a_week_says_that_it_speaks_of_its_own_hours() -> None:
    log = personalised_log(2_000)
    seconds = np.arange(2_000) * 60
    for spacing, own in ((1, True), (10, False)):  # 33 hours, and 14 days
        timed = ts.EventLog.from_arrays(
            log.users,
            log.pools,
            log.pool,
            log.shown,
            log.payoff,
            propensity=log.recorded_propensity,
            timestamps=seconds * spacing,
        )
        covers = ts.evaluate(Matching(0.5), timed).covers
        assert ("in these very hours" in covers) == own
