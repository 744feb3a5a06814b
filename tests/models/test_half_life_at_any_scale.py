"""With a half-life linear models hold at any scale of contexts, as they do without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.exact_ridge import ExactRidge, Floats
from tests.models.test_any_scale import KINDS, POOL, History, is_factored, nudged

import topstory as ts

HOUR = 3600
FACTOR = 0.25  # after two half-lives: contexts count half, without rounding


def made(kind: str, ridge: float = 1.0) -> ts.Policy:
    model: Any = ts.HybridLinear(ridge, 1.0) if kind == "hybrid" else ts.DisjointLinear(ridge)
    return ts.Policy(model, ts.UpperConfidence(0.5), half_life=1.0)


class Aged(History):
    """The first trials are two half-lives older than the others, and three ticks are between."""

    def teach(self, policy: ts.Policy, shuffled: bool) -> None:
        for a, f in self.features.items():
            policy.add_article(a, f if len(f) else None)
        policy.advance(0)
        half = len(self.users) // 2
        for i, (x, a) in enumerate(zip(self.users, self.shown, strict=True)):
            if i == half:
                for hours in (0.5, 1.25, 2.0):
                    policy.advance(hours * HOUR)
            policy.learn(x, str(a), self.payoffs[i])

    def exact(self, ridge: float, shared: float, nudge: bool) -> ExactRidge:
        def given(values: Floats) -> Floats:
            return nudged(self.random, values) if nudge else values

        features = {a: given(f) for a, f in self.features.items()}
        reference = ExactRidge(self.d, ridge, shared, features)
        weights = np.where(np.arange(len(self.users)) < len(self.users) // 2, np.sqrt(FACTOR), 1.0)
        for a in POOL:
            mine = self.shown == a
            less = weights[mine, np.newaxis]
            reference.shown(given(self.users[mine]) * less, a)
            reference.paid(given(self.users[mine]) * less, a, self.payoffs[mine] * weights[mine])
        return reference


CASES = [  # scale, ridge, whether scales are mixed
    *((1e-9, 1.0, False), (1.0, 1e3, True), (1e3, 1.0, True), (1e6, 1.0, False)),
    *((1e9, 1e3, True), (1e12, 1.0, False), (1e12, 1e3, True)),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("scale", "ridge", "mixed"), CASES)
@pytest.mark.parametrize("trials", [12, 60])  # fewer than an article's features, and more
def test_trials_that_count_less_are_right_at_any_scale(
    kind: str, scale: float, ridge: float, mixed: bool, trials: int
) -> None:
    history = Aged(kind, 5, scale, trials, seed=3, mixed=mixed)
    policy = made(kind, ridge)
    history.teach(policy, shuffled=False)
    assert is_factored(policy) or scale < 1e6
    compared, total = history.judge(policy, ridge, 1.0)
    assert compared > (0.6 if trials == 60 else 0.3) * total


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_factors_fade_as_sums_do(kind: str, removed: bool) -> None:
    """What a removed article left in the shared part, too."""
    history = Aged(kind, 3, 1.0, 30, seed=8)
    sums = made(kind)
    history.teach(sums, shuffled=False)
    if removed:
        sums.remove_article("b")
    factors = sums.copy()
    factors.model.factorise()
    for policy in (sums, factors):
        policy.advance(4 * HOUR)
    assert (is_factored(sums), is_factored(factors)) == (False, True)
    for x in history.users[:5]:
        for ask in ("estimates", "widths"):
            ours, theirs = (getattr(policy, ask)(x, ["a", "c"]) for policy in (factors, sums))
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)
