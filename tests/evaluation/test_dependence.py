"""An interval of a mean of dependent blocks covers the truth as often as it says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.signal import lfilter
from scipy.special import stdtrit

from topstory.evaluation.dependence import (
    ENOUGH,
    HEIGHTS,
    MIN_INDEPENDENT,
    Dependence,
    _spectra,
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
    random, found = np.random.default_rng(2026), []
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
JUDGED = [(0.0, 200), (0.6, 170), (0.85, 180), (0.93, 200), (0.93, 400)]


@pytest.mark.parametrize(("fade", "blocks"), JUDGED)
def test_hours_that_depend_on_one_another_are_covered(fade: float, blocks: int) -> None:
    """300 runs: coverage of 0.95 has a standard error of 0.013."""
    given, _ = coverage(lambda random: hours_of_clicks(random, blocks, fade), 300)
    assert 0.92 <= given <= 0.985


@pytest.mark.long
@pytest.mark.parametrize(("fade", "blocks"), [*JUDGED, (0.9, 168), (0.95, 168), (0.95, 250)])
def test_hours_that_depend_on_one_another_are_covered_at_full_size(
    fade: float, blocks: int
) -> None:
    """3,000 runs: a standard error of 0.004."""
    given, _ = coverage(lambda random: hours_of_clicks(random, blocks, fade), 3_000)
    assert 0.92 <= given <= 0.98


def test_dependence_of_another_shape_is_covered() -> None:
    """It ends all at once, where the grid fades: a little too wide, not too narrow."""
    assert coverage(lambda random: moving_mean(random, 200), 300)[0] >= 0.94


def errors_of(series: Floats) -> list[Dependence]:
    return [Dependence.of(each - each.mean()) for each in series]


@pytest.mark.parametrize(("blocks", "most"), [(20, 0.05), (24, 0.05), (48, 0.03), (160, 0.02)])
def test_independent_blocks_of_a_short_log_are_hardly_ever_refused(
    blocks: int, most: float
) -> None:
    """Of 400 logs: in 1, 2, 1 and 0 % on average; and nothing is added to their variance."""
    found = errors_of(np.random.default_rng(8).normal(size=(400, blocks)))
    assert np.mean([each.too_short for each in found]) <= most
    assert {each.inflation for each in found} == {1.0}


def test_a_short_log_that_depends_strongly_is_often_called_too_short() -> None:
    """Of 48 hours at φ = 0.95 three quarters: it needs more blocks than it has."""
    random = np.random.default_rng(9)
    found = errors_of(np.array([fading(random, 48, 0.95, 0.0) for _ in range(200)]))
    short = [each for each in found if each.too_short]
    assert len(short) > 0.6 * 200
    assert all(each.needed >= ENOUGH > 48 for each in short)


def test_independent_blocks_pay_little() -> None:
    """A fifth for a week of hours, a tenth for ten days."""
    random = np.random.default_rng(1)
    for blocks, most in ((ENOUGH, 1.25), (240, 1.15), (500, 1.05)):
        found = errors_of(random.normal(size=(200, blocks)))
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


@pytest.mark.parametrize("height", [3, 10, 40])
def test_a_policy_that_learns_is_not_taken_for_hours_that_depend(height: float) -> None:
    """Its errors rise along a curve that ends where it has learned; noise beside it."""
    random = np.random.default_rng(3)
    curve = 1 - np.exp(-np.arange(168) / 168 / 0.1)
    series = height * (curve - curve.mean()) + random.normal(size=(100, 168))
    plain = np.median([each.inflation for each in errors_of(series)])
    beside = [Dependence.of(each - each.mean(), learning=True).inflation for each in series]
    assert plain > 4
    assert np.median(beside) < 2


@pytest.mark.parametrize("learning", [False, True])
def test_answers_are_explained_as_well_as_the_whole_covariance_says(learning: bool) -> None:
    """Each likelihood is that of a normal vector, with its covariance written out."""
    waves = np.random.default_rng(2).normal(size=29)
    known = _spectra(30)
    scales, fits = known.explain(waves, learning)
    heights: list[tuple[float, list[int]]] = [(0.0, [])]
    if learning:
        which = [*([i] for i in range(3)), [0, 1, 2]]
        heights += [(height, each) for each in which for height in HEIGHTS]
    assert len(fits) == len(heights)
    for (height, some), scale, fit in zip(heights, scales, fits, strict=True):
        curves = known.curves[:, some]
        for k in (0, 40, 165):
            covariance = np.diag(1 / known.inverse[k]) + height * curves @ curves.T
            expected = waves @ np.linalg.solve(covariance, waves) / 29
            np.testing.assert_allclose(scale[k], expected, rtol=1e-6)
            told = -0.5 * (np.linalg.slogdet(covariance)[1] + 29 * np.log(expected))
            mass = (1.0 if not learning else 0.25) if not height else 0.75 / 24
            np.testing.assert_allclose(fit[k], told + known.prior[k] + np.log(mass), rtol=1e-6)


def test_few_blocks_and_no_error_at_all_are_no_error() -> None:
    for errors in (np.zeros(0), np.zeros(1), np.array([1.0, -1.0]), np.zeros(50)):
        found = Dependence.of(errors)
        assert found.inflation == 1
        assert not found.too_short
