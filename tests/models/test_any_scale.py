"""Estimates and widths at any scale of contexts and ridges, against exact arithmetic.

A problem allows an answer where no article's exact answer moves by `STEADY` or more when every
number given to every call (contexts, features) is changed by at most one unit in its last place.
There, answers must be right to `TOLERANCE`: widths relative to themselves, estimates relative to
themselves or to their width, if that is larger. Everywhere they must be finite.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.exact_ridge import ExactRidge, Floats

import topstory as ts
from topstory.models.linear import LinearModel
from topstory.serving.state.update_batch import SHOWN, UpdateBatch

TOLERANCE, STEADY = 1e-6, 1e-7
KINDS = ["disjoint", "hybrid"]
POOL = ["a", "b", "c"]
PARTS = ("departed", "theta")
SCALES = [1e-12, 1e-6, 1e-3, 1.0, 1e2, 1e3, 1e4, 1e6, 1e9, 1e12]
RIDGES = [(1e-6, 1e6), (1e-6, 1e-6), (1.0, 1.0), (1e6, 1e-6), (1e6, 1e6)]


def nudged(random: np.random.Generator, values: Floats) -> Floats:
    """The same numbers, each a unit in its last place more or less, or unchanged."""
    changed: Floats = values + np.spacing(values) * random.integers(-1, 2, np.shape(values))
    return changed


def make(kind: str, ridge: float, shared: float) -> ts.Policy:
    model: Any = ts.HybridLinear(ridge, shared) if kind == "hybrid" else ts.DisjointLinear(ridge)
    return ts.Policy(model, ts.UpperConfidence(0.5))


def is_factored(policy: ts.Policy) -> bool:
    assert isinstance(policy.model, LinearModel)
    return policy.model.factored


class History:
    """Trials of three articles, and what the exact answer is after them."""

    def __init__(
        self, kind: str, d: int, scale: float, trials: int, seed: int, mixed: bool = False
    ) -> None:
        self.random = random = np.random.default_rng(seed)
        self.kind, self.d = kind, d
        self.scales = scale * (10.0 ** random.uniform(-3, 3, d) if mixed else np.ones(d))
        self.features = {a: random.normal(0, 1, 2 if kind == "hybrid" else 0) for a in POOL}
        self.users = random.normal(0, 1, (trials, d)) * self.scales
        self.shown = random.choice(POOL, trials)
        self.payoffs = random.random(trials)

    def teach(self, policy: ts.Policy, shuffled: bool) -> None:
        """Both halves of every trial: in order, or in any order."""
        for a, f in self.features.items():
            policy.add_article(a, f if len(f) else None)
        halves = [(paid, i) for i in range(len(self.users)) for paid in (False, True)]
        for place in self.random.permutation(len(halves)) if shuffled else range(len(halves)):
            paid, i = halves[place]
            x, a = self.users[i], str(self.shown[i])
            policy.paid(x, a, self.payoffs[i]) if paid else policy.shown(x, a)

    def exact(self, ridge: float, shared: float, nudge: bool) -> ExactRidge:
        """The reference; `nudge`: with inputs that are changed by a unit in the last place."""

        def given(values: Floats) -> Floats:
            return nudged(self.random, values) if nudge else values

        features = {a: given(f) for a, f in self.features.items()}
        reference = ExactRidge(self.d, ridge, shared, features)
        for a in POOL:
            mine = self.shown == a
            reference.shown(given(self.users[mine]), a)
            reference.paid(given(self.users[mine]), a, self.payoffs[mine])
        return reference

    def judge(
        self, policy: ts.Policy, ridge: float, shared: float, nudges: int = 3
    ) -> tuple[int, int]:
        """Compare everything; returns how many numbers were compared, and how many there were."""
        exact = self.exact(ridge, shared, nudge=False)
        others = [self.exact(ridge, shared, nudge=True) for _ in range(nudges)]
        compared = total = 0
        fresh = self.random.normal(0, 1, self.d) * self.scales
        for x in (self.users[0], self.users[-1], fresh):
            ours = policy.estimates(x, POOL), policy.widths(x, POOL)
            assert np.isfinite(ours).all()
            assert (ours[1] >= 0).all()
            truth = exact.bounds(x, POOL)
            size = np.maximum(np.abs(truth[0]), truth[1]), truth[1]
            moved = [other.bounds(nudged(self.random, x), POOL) for other in others]
            for which in range(2):  # estimates, widths
                shift = max(float(max(abs(m[which] - truth[which]) / size[which])) for m in moved)
                error = abs(ours[which] - truth[which]) / size[which]
                if shift < STEADY:  # of the whole pool: one draw may spare an article by luck
                    assert (error < TOLERANCE).all(), (which, error, shift)
                    compared += len(error)
                total += len(error)
        return compared, total


def sweep(kind: str, d: int, cases: list[Any]) -> None:
    compared = total = factored = 0
    for number, (scale, (ridge, shared), mixed, shuffled) in enumerate(cases):
        trials = 4 * d if number % 2 else d // 2 + 3
        history = History(kind, d, scale, trials, number, mixed)
        policy = make(kind, ridge, shared)
        history.teach(policy, shuffled)
        factored += is_factored(policy)
        found = history.judge(policy, ridge, shared)
        compared, total = compared + found[0], total + found[1]
    assert compared > 0.6 * total  # most problems allow an answer
    assert 0.2 * len(cases) < factored < len(cases)  # both forms were used


ALL = list(itertools.product(SCALES, RIDGES, [False, True], [False, True]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_designed_part_of_all_scales(kind: str) -> None:
    # Every seventh case, which meets all scales, ridges, mixtures and orders.
    sweep(kind, 10, ALL[::7])


@pytest.mark.parametrize(("d", "number"), [(2, 189), (40, 107), (40, 199)])
def test_a_payoff_before_its_impression_leaves_no_trace(d: int, number: int) -> None:
    # It makes what the articles share 1e12 times as large for a while: rounding then stayed.
    scale, (ridge, shared), mixed, shuffled = ALL[number]
    assert shuffled
    history = History("hybrid", d, scale, 4 * d, number, mixed)
    policy = make("hybrid", ridge, shared)
    history.teach(policy, shuffled)
    compared, total = history.judge(policy, ridge, shared)
    assert compared > 0.6 * total


def without_parts(arrays: dict[str, Any]) -> dict[str, Any]:
    """As version 0.1.0 stored a hybrid model, in either form."""
    return {name: array.copy() for name, array in arrays.items() if name not in PARTS}


@pytest.mark.parametrize("scale", [1.0, 1e7])
@pytest.mark.parametrize("older", [False, True])
def test_what_a_removed_article_taught_stays(scale: float, older: bool) -> None:
    history = History("hybrid", 3, scale, 30, seed=8)
    policy = make("hybrid", 1.0, 1.0)
    history.teach(policy, shuffled=False)
    assert is_factored(policy) == (scale > 1)
    policy.remove_article("b")
    if older:
        arrays, ids = without_parts(policy.model.arrays()), policy.model.roster.ids
        policy = make("hybrid", 1.0, 1.0)
        policy.model.restore(ids, 3, arrays)
    for i in range(30):  # enough that the ordinary form would notice a wrong share
        policy.learn(history.users[i], "a", history.payoffs[i])
    if scale == 1.0:
        policy.model.factorise()
    exact = history.exact(1.0, 1.0, nudge=False)
    exact.shown(history.users, "a")
    exact.paid(history.users, "a", history.payoffs)
    for x in history.users[:3]:
        truth = exact.bounds(x, ["a", "c"])
        np.testing.assert_allclose(policy.estimates(x, ["a", "c"]), truth[0], rtol=1e-6)
        np.testing.assert_allclose(policy.widths(x, ["a", "c"]), truth[1], rtol=1e-6)


def test_more_features_than_usual() -> None:
    sweep("disjoint", 40, ALL[3::29])


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "d"), [("disjoint", 2), ("disjoint", 200), ("hybrid", 2), ("hybrid", 40)]
)
def test_all_scales(kind: str, d: int) -> None:
    sweep(kind, d, ALL if d < 200 else ALL[::19])


@pytest.mark.long
@pytest.mark.parametrize(("scale", "mixed"), [(1e-3, False), (1e3, True), (1e9, False)])
def test_hybrid_with_two_hundred_features(scale: float, mixed: bool) -> None:
    """A minute each, for the two references with 1,000 coefficients."""
    history = History("hybrid", 200, scale, 300, 5, mixed)
    policy = make("hybrid", 1.0, 1.0)
    history.teach(policy, shuffled=False)
    assert is_factored(policy) == (scale >= 1e3)
    compared, total = history.judge(policy, 1.0, 1.0, nudges=1)
    assert compared > 0.6 * total


def one_article_log(users: Floats, payoffs: Floats) -> ts.EventLog:
    """Pools of one article: every event is a trial."""
    events = len(users)
    pool = np.arange(events) % len(POOL)
    shown = [POOL[p] for p in pool]
    return ts.EventLog.from_arrays(users, [[a] for a in POOL], pool, shown, payoffs)


def judge_replay(
    kind: str, scale: float, ridge: float, events: int, seed: int, nudges: int = 3
) -> None:
    d = 6
    history = History(kind, d, scale, events, seed)
    history.users = history.users.astype(np.float32).astype(np.float64)  # as a log keeps them
    history.payoffs = (history.payoffs < 0.2).astype(np.float64)
    history.shown = np.array([POOL[i % len(POOL)] for i in range(events)])
    log = one_article_log(history.users, history.payoffs)
    policy = make(kind, ridge, 1.0)
    for a, f in history.features.items():
        policy.add_article(a, f if len(f) else None)
    trained = ts.replay(policy, log).policy
    compared, total = history.judge(trained, ridge, 1.0, nudges)
    assert compared == total  # so many trials allow an answer everywhere


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("scale", "ridge"), [(1e-12, 1.0), (1e2, 1e-6), (1e6, 1.0), (1e12, 1e6)])
def test_replay_at_any_scale(kind: str, scale: float, ridge: float) -> None:
    judge_replay(kind, scale, ridge, 3000, seed=5)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e3, 1e6, 1e12])
@pytest.mark.parametrize("ridge", [1e-6, 1.0, 1e6])
def test_a_million_updates_at_any_scale(kind: str, scale: float, ridge: float) -> None:
    # Four seconds of processor time each, half of it for two references.
    judge_replay(kind, scale, ridge, 1_000_000, seed=6, nudges=1)


def growing_log(seed: int, events: int = 2000) -> ts.EventLog:
    """Contexts that grow from 1 to 1e9: the state has to change its form on the way."""
    random = np.random.default_rng(seed)
    users = random.normal(0, 1, (events, 5)) * 10 ** np.linspace(0, 9, events)[:, np.newaxis]
    users[:, -1] = 1.0
    shown = random.choice(POOL, events)
    clicked = random.random(events) < np.where(shown == "b", 0.4, 0.1)
    features = {a: [float(i), 1.0] for i, a in enumerate(POOL)}
    return ts.EventLog.from_arrays(users, [POOL], [0] * events, shown, clicked, articles=features)


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_equal_the_plain_loop_when_the_form_changes(kind: str) -> None:
    class Own:
        """Replayed event by event, since it is not a `Policy`."""

        def __init__(self, policy: ts.Policy) -> None:
            self.policy = policy
            self.choose, self.learn = policy.choose, policy.learn
            self.greedy, self.add_article = policy.greedy, policy.add_article

        def __deepcopy__(self, memo: object) -> Own:
            return Own(self.policy.copy())

    log, policy = growing_log(1), make(kind, 1.0, 1.0)
    fast, plain = ts.replay(policy, log), ts.replay(Own(policy), log)
    np.testing.assert_array_equal(fast.learning.sums, plain.learning.sums)
    np.testing.assert_array_equal(fast.deployment.sums, plain.deployment.sums)
    assert is_factored(fast.policy)
    assert not is_factored(policy)
    theirs = plain.policy.policy.model.arrays()
    for field, array in fast.policy.model.arrays().items():
        np.testing.assert_array_equal(array, theirs[field])


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_halves_equals_one_by_one_when_the_form_changes(kind: str) -> None:
    log = growing_log(2, events=60)
    single, batched = make(kind, 1.0, 1.0), make(kind, 1.0, 1.0)
    for policy in (single, batched):
        for article, features in log.articles.items():
            policy.add_article(article, features)
        policy.model.see(5)
    batch = UpdateBatch(5)
    for event in log:
        user = np.asarray(event.user, np.float64)
        single.shown(user, event.shown)
        single.paid(user, event.shown, 1.0)
        for payoff in (SHOWN, 1.0):
            batch.add(batched.model.roster.slot(event.shown), user.tobytes(), payoff)
    batch.apply(batched.model, lambda: None)
    assert is_factored(single)
    for field, array in single.model.arrays().items():
        np.testing.assert_array_equal(array, batched.model.arrays()[field])


@pytest.mark.parametrize("kind", KINDS)
def test_a_factored_policy_is_stored_and_copied_to_the_bit(kind: str, tmp_path: Path) -> None:
    log = growing_log(3)
    policy = ts.replay(make(kind, 1.0, 1.0), log).policy
    policy.save(tmp_path / "state.safetensors")
    again = ts.Policy.load(tmp_path / "state.safetensors")
    rest = growing_log(4)
    ours, theirs = ts.replay(policy, rest), ts.replay(again, rest)
    np.testing.assert_array_equal(ours.learning.sums, theirs.learning.sums)
    for field, array in ours.policy.model.arrays().items():
        np.testing.assert_array_equal(array, theirs.policy.model.arrays()[field])
    again.remove_article("b")
    again.add_article("d", [0.5, 1.0])
    user = np.ones(5)
    assert np.isfinite(again.scores(user, ["a", "c", "d"])).all()
    assert again.estimates(user, ["d"])[0] != policy.estimates(user, ["b"])[0]
    assert again.model.drift() == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_what_another_process_scores_from_holds_after_the_change(kind: str) -> None:
    policy = ts.replay(make(kind, 1.0, 1.0), growing_log(5)).policy
    elsewhere = make(kind, 1.0, 1.0)
    for i, a in enumerate(POOL):
        elsewhere.add_article(a, [float(i), 1.0])
    elsewhere.model.score_from(5, {f: getattr(policy.model.state, f) for f in policy.model.scored})
    user = np.full(5, 1e7)
    np.testing.assert_array_equal(elsewhere.scores(user, POOL), policy.scores(user, POOL))


def test_raw_columns_do_not_break_a_policy() -> None:
    # Bytes, cents, milliseconds since 1970, ids, and parts of them: nothing is scaled.
    random = np.random.default_rng(7)
    events, articles = 10_000, [f"n{i}" for i in range(10)]
    columns = [random.integers(0, high, events) * 1.0 for high in (10**9, 10**6, 2 * 10**9, 10**7)]
    columns += [1.6e12 + random.integers(0, 6 * 10**8, events), *(random.random((4, events)) * 1e5)]
    users = np.column_stack([*columns, np.ones(events)])
    shown = random.choice(articles, events)
    clicked = random.random(events) < np.where(shown == "n3", 0.5, 0.05)
    log = ts.EventLog.from_arrays(users, [articles], [0] * events, shown, clicked)
    for name in ("linucb-disjoint", "linucb-hybrid"):
        result = ts.replay(ts.policy(name, alpha=0.1), log)
        assert result.learning.expected_trials == pytest.approx(1000)
        assert result.learning.trials == pytest.approx(1000, abs=150)
        assert result.deployment.relative_ctr > 3  # the best article pays 5.3 times the average
        choice = result.policy.choose(users[0], articles)
        assert choice.propensity > 0
