"""An interval of a mean of dependent blocks covers the truth as often as it says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.signal import lfilter
from scipy.special import stdtrit

from topstory.evaluation.dependence import (
    AFTER_LEARNING,
    MIN_INDEPENDENT,
    Dependence,
    without_learning,
)

Floats = npt.NDArray[np.float64]


def fading(random: np.random.Generator, blocks: int, fade: float, noise: float) -> Floats:
    """A stationary series that fades by a factor from block to block, and new noise in each."""
    steps = random.normal(size=blocks)
    steps[1:] *= np.sqrt(1 - fade**2)
    slow: Floats = lfilter([1.0], [1.0, -fade], steps)
    return slow + noise * random.normal(size=blocks)


def holds(errors: Floats, miss: float) -> tuple[bool, bool]:
    """Whether the interval holds the truth, and whether the log is too short for one."""
    found = Dependence.of(errors)
    spread = len(errors) * float(errors.var(ddof=1)) * found.inflation
    return abs(miss) <= stdtrit(found.freedom, 0.975) * spread**0.5, found.too_short


def coverage(make: Callable[[np.random.Generator], Floats], runs: int) -> tuple[float, float]:
    """The share of intervals that hold, of those that are given; and of logs that are too short."""
    random, found = np.random.default_rng(77), []
    for _ in range(runs):
        series = make(random)
        found.append(holds(series - series.mean(), series.sum()))
    hits, short = np.array(found).T
    return float(hits[~short].mean()), float(short.mean())


def hours_of_clicks(random: np.random.Generator, blocks: int, fade: float) -> Floats:
    """Rates of 400 visits an hour whose log-odds fade: less what they are in all such hours."""
    odds = -3 + 0.4 * fading(random, blocks, fade, 0.0)
    return random.binomial(400, 1 / (1 + np.exp(-odds))) / 400 - TRUE_RATE


def moving_mean(random: np.random.Generator, blocks: int) -> Floats:
    """What was new in one of the last eight blocks counts, and then no more; and noise."""
    steps = np.cumsum(random.normal(size=blocks + 8))
    slow = (steps[8:] - steps[:-8]) / 8**0.5
    return np.asarray(0.84 * slow + 0.55 * random.normal(size=blocks))


DRAWN = np.random.default_rng(1).normal(size=500_000)
TRUE_RATE = float((1 / (1 + np.exp(3 - 0.4 * DRAWN))).mean())
# Other series, fadings and lengths than those that the constants were chosen on.
JUDGED = [(0.0, 120), (0.6, 72), (0.85, 120), (0.93, 200), (0.93, 400)]


@pytest.mark.parametrize(("fade", "blocks"), JUDGED)
def test_hours_that_depend_on_one_another_are_covered(fade: float, blocks: int) -> None:
    """300 runs: coverage of 0.95 has a standard error of 0.013."""
    given, _ = coverage(lambda random: hours_of_clicks(random, blocks, fade), 300)
    assert 0.92 <= given <= 0.985


@pytest.mark.long
@pytest.mark.parametrize(("fade", "blocks"), [*JUDGED, (0.85, 72), (0.93, 72), (0.95, 100)])
def test_hours_that_depend_on_one_another_are_covered_at_full_size(
    fade: float, blocks: int
) -> None:
    """3,000 runs: a standard error of 0.004."""
    given, _ = coverage(lambda random: hours_of_clicks(random, blocks, fade), 3_000)
    assert 0.92 <= given <= 0.98


def test_dependence_of_another_shape_is_covered() -> None:
    """It ends all at once, where the grid fades: a little too wide, not too narrow."""
    assert coverage(lambda random: moving_mean(random, 200), 300)[0] >= 0.94


def test_a_short_log_that_depends_strongly_is_often_called_too_short() -> None:
    """Of 48 hours at φ = 0.9, about half; of those left 92 % hold. Never where none depends."""
    given, short = coverage(lambda random: fading(random, 48, 0.9, 0.0), 400)
    assert given >= 0.92
    assert short > 0.35
    assert coverage(lambda random: random.normal(size=48), 400)[1] == 0


def test_independent_blocks_pay_little() -> None:
    """Intervals of 48 of them are a twentieth wider in the middle, of 336 not at all."""
    random = np.random.default_rng(1)
    for blocks, most in ((48, 1.1), (336, 1.01)):
        found = [Dependence.of(random.normal(size=blocks)) for _ in range(200)]
        reach = [stdtrit(each.freedom, 0.975) * each.inflation**0.5 for each in found]
        assert np.median(reach) < most * stdtrit(blocks - 1, 0.975)
        assert min(each.inflation for each in found) >= 1
        assert not any(each.too_short for each in found)


def test_a_long_log_shows_how_long_its_dependence_lasts() -> None:
    random = np.random.default_rng(2)
    series = [fading(random, 3_000, 0.95, 0.0) for _ in range(30)]
    found = [Dependence.of(each - each.mean()) for each in series]
    assert not any(each.too_short for each in found)
    assert np.median([each.length for each in found]) == pytest.approx(39, rel=0.4)
    assert min(each.freedom for each in found) >= MIN_INDEPENDENT


def test_a_policy_that_learns_is_not_taken_for_hours_that_depend() -> None:
    """Its errors rise along a curve that ends where it has learned; noise beside it."""
    random = np.random.default_rng(3)
    when = np.arange(168) / 168
    curve = 1 - np.exp(-when / 0.1)
    series = [3 * (curve - curve.mean()) + random.normal(size=168) for _ in range(100)]
    plain = [Dependence.of(each - each.mean()).inflation for each in series]
    beside = [Dependence.of(without_learning(each), AFTER_LEARNING) for each in series]
    assert np.median(plain) > 4
    assert np.median([each.inflation for each in beside]) < 1.2


def test_few_blocks_and_no_error_at_all_are_no_error() -> None:
    for errors in (np.zeros(0), np.zeros(1), np.array([1.0, -1.0]), np.zeros(50)):
        found = Dependence.of(errors)
        assert found.inflation == 1
        assert not found.too_short
