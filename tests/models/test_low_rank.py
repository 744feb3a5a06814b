"""A diagonal and a few rows: what the sums say, exact where they can hold it."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from tests.models.test_any_scale import RIDGES, SCALES, History

import topstory as ts
from topstory.kernels.models.low_rank import TURNS
from topstory.models import DisjointLinear, LowRankLinear

D = 12
Floats = npt.NDArray[np.float64]


class Plain:
    """The same with whole matrices: A = diag(D) + FᵀF.

    A trial takes a free row of F; if there is none, F's weakest direction is put on D.
    """

    def __init__(self, ridge: float, rank: int) -> None:
        self.D, self.F, self.b = np.full(D, ridge), np.zeros((rank + 1, D)), np.zeros(D)

    def shown(self, x: Floats) -> None:
        free = np.flatnonzero(~self.F[:-1].any(axis=1))
        if len(free):
            self.F[free[0]] = x
            return
        self.F[-1] = x
        square = self.F @ self.F.T
        square += (1e-10 * np.trace(square) + 1e-300) * np.eye(len(square))
        u = np.arange(1.0, len(square) + 1)
        for _ in range(TURNS):
            u = np.linalg.solve(square, u)
            u /= np.linalg.norm(u)
        e = np.zeros(len(u))
        e[-1] = 1.0 if u[-1] >= 0 else -1.0
        h = (u + e) / np.linalg.norm(u + e)
        self.F = self.F - 2 * np.outer(h, h @ self.F)
        self.D = self.D + self.F[-1] ** 2
        self.F[-1] = 0

    def scores(self, x: Floats) -> tuple[float, float]:
        solved = np.linalg.solve(np.diag(self.D) + self.F.T @ self.F, np.array([self.b, x]).T)
        return float(x @ solved[:, 0]), float(np.sqrt(x @ solved[:, 1]))


def made(rank: int, ridge: float = 2.0) -> ts.Policy:
    return ts.Policy(LowRankLinear(ridge, rank), ts.UpperConfidence(0.5))


def trials(seed: int, count: int) -> list[tuple[Floats, float]]:
    random = np.random.default_rng(seed)
    return [(random.normal(size=D), float(random.random() < 0.3)) for _ in range(count)]


@pytest.mark.parametrize("rank", [0, 1, 4])
def test_it_is_the_same_as_with_whole_matrices(rank: int) -> None:
    policy, plain = made(rank), Plain(2.0, rank)
    for x, payoff in trials(0, 40):
        policy.learn(x, "a", payoff)
        plain.shown(x)
        plain.b += payoff * x
        estimate, width = plain.scores(x)
        np.testing.assert_allclose(policy.estimates(x, ["a"]), [estimate], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(policy.widths(x, ["a"]), [width], rtol=1e-8)


@pytest.mark.parametrize(("rank", "count"), [(D, 60), (7, 7)])
def test_with_room_for_all_directions_it_is_linucb(rank: int, count: int) -> None:
    """As many rows as features, or no more trials than rows."""
    policy, exact = made(rank), ts.Policy(DisjointLinear(2.0), ts.UpperConfidence(0.5))
    for x, payoff in trials(1, count):
        policy.learn(x, "a", payoff)
        exact.learn(x, "a", payoff)
    for x, _ in trials(2, 10):
        np.testing.assert_allclose(policy.scores(x, ["a"]), exact.scores(x, ["a"]), rtol=1e-7)


def test_the_diagonal_stays_exact() -> None:
    policy = made(3)
    seen = [x for x, _ in trials(3, 50)]
    for x in seen:
        policy.shown(x, "a")
    state = policy.model.state
    A = np.diag(state.diagonal[0]) + state.rows[0].T @ state.rows[0]
    np.testing.assert_allclose(np.diag(A), 2.0 + np.square(seen).sum(0), rtol=1e-12)


def test_payoffs_in_any_order_teach_the_same() -> None:
    whole, late = made(4), made(4)
    rows = trials(4, 30)
    for x, payoff in rows:
        whole.learn(x, "a", payoff)
        late.shown(x, "a")
    for x, payoff in reversed(rows):
        late.paid(x, "a", payoff / 2)
        late.paid(x, "a", payoff / 2)
    for x, _ in trials(5, 5):
        np.testing.assert_allclose(whole.scores(x, ["a"]), late.scores(x, ["a"]), rtol=1e-10)


def test_after_a_half_life_trials_count_half() -> None:
    policy = ts.Policy(LowRankLinear(1.0, 0), ts.Greedy(), half_life=6)
    policy.advance(0)
    policy.learn([1.0], "a", payoff=1)
    policy.advance(6 * 3600)
    np.testing.assert_allclose(policy.estimates([1.0], ["a"]), [0.5 / 1.5])


def test_a_bad_rank_is_refused() -> None:
    for rank in (-1, 2.5, 1000):
        with pytest.raises(ValueError, match="rank must be a whole number from 0 to 256"):
            LowRankLinear(rank=rank)


SCALED = list(itertools.product(SCALES, RIDGES[:-1], [False, True], [False, True]))


def test_it_holds_at_any_scale_of_contexts_and_ridges() -> None:
    """As the exact regression, in all cases where rounding allows an answer; and finite in all."""
    compared = total = 0
    for number, (scale, (ridge, _), mixed, shuffled) in enumerate(SCALED[::5]):
        trials = 8 if number % 2 else 30
        history = History("disjoint", D, scale, trials, number, mixed)
        policy = ts.Policy(LowRankLinear(ridge, 20), ts.UpperConfidence(0.5))
        history.teach(policy, shuffled)
        found = history.judge(policy, ridge, 1.0)
        compared, total = compared + found[0], total + found[1]
    assert compared > 0.6 * total


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e9, 1e12, 1e19])
@pytest.mark.parametrize("rank", [0, 2, 16])
def test_more_trials_than_rows_leave_it_able_to_learn_at_any_scale(scale: float, rank: int) -> None:
    """A feature that tells the better of two articles is found, however large contexts are."""
    random = np.random.default_rng(6)
    events, pool = 3_000, np.array(["a", "b"])
    users = np.column_stack([random.normal(size=(events, D - 1)), np.ones(events)])
    shown = random.integers(2, size=events)
    clicked = random.random(events) < np.where((users[:, 0] > 0) == (shown == 0), 0.5, 0.1)
    places = np.zeros(events, int)
    log = ts.EventLog.from_arrays(users * scale, [["a", "b"]], places, pool[shown], clicked)
    result = ts.replay(made(rank, ridge=1.0), log)
    assert abs(result.learning.trials - events / 2) < 5 * np.sqrt(events / 4)
    assert result.deployment.relative_ctr > 1.3  # 1.67 if it always chose the better one
