"""An interval of a mean of dependent blocks covers the truth as often as it says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.signal import lfilter
from scipy.special import stdtrit

from topstory.evaluation.dependence import MIN_WAVES, Dependence

Floats = npt.NDArray[np.float64]


def fading(random: np.random.Generator, blocks: int, fade: float, noise: float) -> Floats:
    """A stationary series that fades by a factor from block to block, and new noise in each."""
    steps = random.normal(size=blocks)
    steps[1:] *= np.sqrt(1 - fade**2)
    slow: Floats = lfilter([1.0], [1.0, -fade], steps)
    return slow + noise * random.normal(size=blocks)


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("fade", [0.0, 0.5, 0.8, 0.95])
def test_two_weeks_of_hours_are_covered(fade: float, noise: float) -> None:
    """500 runs: coverage of 0.95 has a standard error of 0.01."""
    random, hits = np.random.default_rng(0), 0
    for _ in range(500):
        series = fading(random, 336, fade, noise)
        found = Dependence.of(series - series.mean())
        hits += abs(series.sum()) <= stdtrit(found.freedom, 0.975) * found.variance**0.5
    assert 0.92 <= hits / 500 <= 0.98


def test_independent_blocks_are_taken_for_independent() -> None:
    """Their variance is then the ordinary one. 500 runs; a false alarm once in ten."""
    random = np.random.default_rng(1)
    series = [random.normal(size=336) for _ in range(500)]
    found = [Dependence.of(each - each.mean()) for each in series]
    alone = [each.independent for each in found]
    assert np.mean(alone) > 0.9
    for each, one in zip(found, series, strict=True):
        if each.independent:
            assert each.variance == pytest.approx(336 * one.var(ddof=1))
            assert (each.freedom, each.length, each.too_short) == (335, 1, False)


def test_what_lasts_longer_than_the_log_is_too_short_for_an_interval() -> None:
    """At φ = 0.98, 100 blocks are worth one. The fade is measured too, so some are not noticed."""
    random = np.random.default_rng(2)
    short = [fading(random, 100, 0.98, 0.0) for _ in range(200)]
    long = [fading(random, 3_000, 0.95, 0.0) for _ in range(50)]
    assert np.mean([Dependence.of(each - each.mean()).too_short for each in short]) > 0.8
    found = [Dependence.of(each - each.mean()) for each in long]
    assert not any(each.too_short for each in found)
    assert np.median([each.length for each in found]) == pytest.approx(39, rel=0.4)
    assert min(each.freedom for each in found) >= MIN_WAVES


def test_few_blocks_and_no_error_at_all_are_no_error() -> None:
    for errors in (np.zeros(0), np.zeros(1), np.array([1.0, -1.0]), np.zeros(50)):
        found = Dependence.of(errors)
        assert found.independent
        assert np.isfinite(found.variance)
