"""Parameters that are read from all tuning curves together."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from topstory.evaluation.tuning.recommendation import TriedPoint, recommend
from topstory.policies.registry import REGISTRY

ALPHAS = (0.03, 0.06, 0.1, 0.2, 0.4, 0.6, 1.0, 1.5)
EPSILONS = (0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.5, 0.8)
RIDGES = (1.0, 10.0, 100.0)
POLICIES = ("ucb", "ucb-seg", "linucb-disjoint", "linucb-hybrid")
SIZES = (1.0, 0.2, 0.05)


def curve(
    value: float = 1.5,
    policy: str = "ucb",
    size: float = 1.0,
    best: float = 0.4,
    fall: float = 0.02,
    noise: float = 0.0,
    random: np.random.Generator | None = None,
) -> list[TriedPoint]:
    """The points of a parabola in log α, with noise."""
    found = []
    for alpha in ALPHAS:
        log = math.log(value) - fall * math.log(alpha / best) ** 2
        log += 0.0 if random is None else random.normal(0, noise)
        found.append(
            TriedPoint(policy, size, {"alpha": alpha}, math.exp(log), noise**2, math.exp(log))
        )
    return found


@pytest.mark.parametrize("best", [0.06, 0.2, 1.0])
def test_without_noise_the_best_point_is_taken(best: float) -> None:
    assert recommend(curve(best=best))["ucb", 1.0].parameters == {"alpha": best}


def test_a_lucky_point_far_from_its_neighbours_is_not_taken() -> None:
    points = curve(fall=0.01, noise=0.05)  # as they say; none was drawn
    lucky = TriedPoint("ucb", 1.0, {"alpha": 0.03}, 1.6, 0.05**2, 1.6)
    assert 0.2 <= recommend([lucky, *points[1:]])["ucb", 1.0].parameters["alpha"] <= 1.0


def test_equal_values_go_to_the_one_that_costs_less_while_learning() -> None:
    points = [
        TriedPoint(p.policy, p.size, p.parameters, p.value, p.variance, 1.4 - p.parameters["alpha"])
        for p in curve(fall=0.0005, best=0.4)
    ]
    chosen = recommend(points)["ucb", 1.0].parameters["alpha"]
    assert chosen < 0.4


@pytest.mark.parametrize(("best", "edge"), [(0.01, True), (0.2, False), (8.0, True)])
def test_the_edge_of_the_grid_is_said(best: float, edge: bool) -> None:
    found = recommend(curve(best=best))["ucb", 1.0]
    assert found.at_edge == (("alpha",) if edge else ())


def test_a_single_value_has_no_edge() -> None:
    assert recommend(curve()[3:4])["ucb", 1.0].at_edge == ()


def test_without_clicks_the_default_is_taken_and_nothing_is_promised() -> None:
    points = [
        TriedPoint("egreedy", 1.0, {"epsilon": e}, math.nan, math.nan, math.nan) for e in EPSILONS
    ]
    found = recommend(points)["egreedy", 1.0]
    assert found.parameters == {"epsilon": 0.3}
    assert math.isnan(found.value)


def test_a_value_of_zero_is_known_to_be_bad_without_a_logarithm() -> None:
    points = [
        TriedPoint("ucb", 1.0, {"alpha": alpha}, 0.0 if alpha > 0.3 else 1.5, 0.01, 1.0)
        for alpha in ALPHAS
    ]
    assert math.isfinite(recommend(points)["ucb", 1.0].value)


def test_the_ridge_is_chosen_with_alpha() -> None:
    points = [
        TriedPoint(policy, size, {"alpha": a, "ridge": r}, value, 0.02**2, value)
        for policy in ("linucb-disjoint", "linucb-hybrid")
        for size in SIZES
        for a, r in product(ALPHAS, RIDGES)
        for value in [
            1.5 - 0.02 * math.log(a / 0.2) ** 2 - (0.2 if r != 100 else 0) * (policy[-1] == "d")
        ]
    ]
    found = recommend(points)
    assert found["linucb-hybrid", 0.05].parameters == {"alpha": 0.2, "ridge": 100.0}
    assert found["linucb-hybrid", 0.05].at_edge == ("ridge",)


def test_the_order_of_points_makes_no_difference() -> None:
    random = np.random.default_rng(5)
    points = [p for policy in POLICIES for p in curve(policy=policy, noise=0.03, random=random)]
    shuffled = [points[i] for i in random.permutation(len(points))]
    one, other = recommend(points), recommend(shuffled)
    assert {key: one[key].parameters for key in one} == {
        key: other[key].parameters for key in other
    }


def test_reading_all_curves_together_loses_less_than_the_largest_points() -> None:
    """Over 50 tunings of 12 curves whose best values differ, with the noise of a short log."""
    random = np.random.default_rng(11)
    lost: dict[str, list[float]] = {"pooled": [], "largest": []}
    for _ in range(50):
        common = random.normal(math.log(0.3), 0.5)
        best = {cell: math.exp(common + random.normal(0, 0.4)) for cell in product(POLICIES, SIZES)}
        points = [
            point
            for (policy, size), at in best.items()
            for point in curve(1.5, policy, size, at, 0.02, 0.04, random)
        ]
        for cell, found in recommend(points).items():
            own = [p for p in points if (p.policy, p.size) == cell]
            largest = max(own, key=lambda p: p.value).parameters["alpha"]
            for name, alpha in (("pooled", found.parameters["alpha"]), ("largest", largest)):
                lost[name].append(0.02 * math.log(alpha / best[cell]) ** 2)
    assert np.mean(lost["pooled"]) < 0.5 * np.mean(lost["largest"])


def test_a_ridge_that_is_left_out_is_the_papers() -> None:
    points = [
        TriedPoint("linucb-disjoint", 1.0, {"alpha": a} | ridge, value, 1e-6, value)
        for a in ALPHAS
        for ridge, value in (({}, 1.6), ({"ridge": 10.0}, 1.5), ({"ridge": 100.0}, 1.4))
    ]
    found = recommend(points)["linucb-disjoint", 1.0]
    assert "ridge" not in found.parameters
    assert "ridge" in found.at_edge


@pytest.mark.parametrize("policy", [name for name, entry in REGISTRY.items() if entry.tuned])
def test_every_policy_that_is_tuned_gets_a_recommendation(policy: str) -> None:
    tuned = REGISTRY[policy].tuned
    assert tuned is not None
    grid = tuned.grid
    points = [
        TriedPoint(policy, 1.0, {tuned.name: value}, 1.5 - 0.2 * (i != 4), 1e-6, 1.0)
        for i, value in enumerate(grid)
    ]
    assert recommend(points)[policy, 1.0].parameters == {tuned.name: grid[4]}
