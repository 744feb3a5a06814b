"""Where z changes, hybrid is exact at any scale that it takes, and refuses the others by name.

As in `test_any_scale`: where a problem allows an answer, it must be right to 1e-6, beside exact
arithmetic in which every trial has the z that it had when the article was shown.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.exact_ridge import DIGITS, ExactRidge, Floats, exactly
from tests.models.test_any_scale import POOL, STEADY, TOLERANCE, nudged

import topstory as ts
from topstory.kernels.models.factored import MAX_GENERAL_CONDITION
from topstory.models.input_range import ScaleError

D, M = 6, 2
SCALES = [1e-6, 1.0, 1e2, 1e3, 1e4, 1e5, 1e6]
RIDGES = [(1e-6, 1e6), (1e-6, 1e-6), (1.0, 1.0), (1e6, 1e-6), (1e6, 1e6)]
CASES = list(itertools.product(SCALES, RIDGES, [False, True]))


class Trials:
    """Of three articles with `event` features of the event; one is edited half-way."""

    def __init__(self, scale: float, mixed: bool, event: int, count: int, seed: int) -> None:
        self.random = random = np.random.default_rng(seed)
        self.event, scales = event, scale * (10.0 ** random.uniform(-2, 2, D) if mixed else 1.0)
        self.users = random.normal(0, 1, (count, D)) * scales
        self.extra = random.normal(0, 1, (count, event))
        self.asked = random.normal(0, 1, D) * scales
        self.shown = [str(article) for article in random.choice(POOL, count)]
        self.payoffs = random.random(count)
        self.features = {article: random.normal(0, 1, M) for article in POOL}
        self.edited = random.normal(0, 1, M)

    def f_of(self, i: int) -> dict[str, Floats]:
        """All articles' features at trial i."""
        now = self.features | ({"a": self.edited} if 2 * i >= len(self.users) else {})
        return {article: np.append(f, self.extra[i]) for article, f in now.items()}

    def context(self, x: Floats, i: int) -> Floats:
        return np.concatenate([x[:-1], self.extra[i], x[-1:]])

    def teach(self, policy: ts.Policy) -> None:
        for article, f in self.features.items():
            policy.add_article(article, f)
        for i, (x, article) in enumerate(zip(self.users, self.shown, strict=True)):
            if 2 * i >= len(self.users):
                policy.edit_article("a", self.edited)
            policy.learn(self.context(x, i), article, self.payoffs[i])

    def exact(self, ridge: float, shared: float, nudge: bool) -> ExactRidge:
        def given(values: Floats) -> Floats:
            return nudged(self.random, values) if nudge else values

        reference = ExactRidge(D, ridge, shared, self.f_of(0))
        for i, (x, article) in enumerate(zip(self.users, self.shown, strict=True)):
            f = given(self.f_of(i)[article])
            x = given(x[np.newaxis])
            with_features(reference, {article: f})
            reference.shown(x, article)
            reference.paid(x, article, self.payoffs[i : i + 1])
        with_features(reference, self.f_of(len(self.users) - 1))
        return reference

    def condition(self, ridge: float, shared: float) -> float:
        """As the model bounds it, once it has learned all of this."""
        far = max(float(f @ f) for i in range(len(self.users)) for f in self.f_of(i).values())
        lengths = np.einsum("ij,ij->i", self.users, self.users)
        mine = [lengths[[each == article for each in self.shown]].sum() for article in POOL]
        own = max(mine) * (1 / ridge + far / shared)
        return float(max(own, sum(mine) * far / shared))


def with_features(reference: ExactRidge, features: dict[str, Floats]) -> None:
    from decimal import localcontext

    with localcontext(DIGITS):
        reference.features |= {article: exactly(f) for article, f in features.items()}


@pytest.mark.parametrize("event", [0, 1])
def test_it_is_exact_or_refuses_by_name(event: int) -> None:
    compared = total = refused = factored = 0
    for number, (scale, (ridge, shared), mixed) in enumerate(CASES[event::4]):
        trials = Trials(scale, mixed, event, 24 if number % 2 else 7, number)
        policy = ts.Policy(
            ts.HybridLinear(ridge, shared, event_features=event), ts.UpperConfidence(0.5)
        )
        try:
            trials.teach(policy)
        except ScaleError:
            refused += 1
            # The bound on what all articles share adds what each one could have added.
            assert trials.condition(ridge, shared) > 0.3 * MAX_GENERAL_CONDITION
            continue
        assert isinstance(policy.model, ts.HybridLinear)
        if policy.model.general:  # else the article had no trials when it was edited
            assert trials.condition(ridge, shared) < 10 * MAX_GENERAL_CONDITION
            factored += policy.model.factored
        exact = trials.exact(ridge, shared, nudge=False)
        others = [trials.exact(ridge, shared, nudge=True) for _ in range(2)]
        last = len(trials.users) - 1
        for x in (trials.users[0], trials.users[-1], trials.asked):
            context = trials.context(x, last)
            ours = policy.estimates(context, POOL), policy.widths(context, POOL)
            truth = exact.bounds(x, POOL)
            size = np.maximum(np.abs(truth[0]), truth[1]), truth[1]
            moved = [other.bounds(nudged(trials.random, x), POOL) for other in others]
            for which in range(2):
                shift = max(float(max(abs(m[which] - truth[which]) / size[which])) for m in moved)
                if shift < STEADY:
                    error = abs(ours[which] - truth[which]) / size[which]
                    assert (error < TOLERANCE).all(), (scale, ridge, shared, mixed, error)
                    compared += 1
                total += 1
    assert compared > 0.6 * total
    assert refused >= 2
    assert factored >= 2
