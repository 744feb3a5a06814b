"""z = x ⊗ (f, e), where e changes with the event: every form equals Algorithm 2 and plain ridge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.twins import Algorithm2, Floats, LogisticRegressions, StackedRidge

import topstory as ts
from topstory.engines import engine
from topstory.evaluation.off_policy.weighting.targets import target_of
from topstory.events import EventLog
from topstory.events.columns.varying import VaryingNumbers, starts_of
from topstory.kernels.models.general_hybrid import GeneralHybrid
from topstory.models.input_range import ScaleError
from topstory.policies.log_learner import learn_log
from topstory.policies.sum_learner import learn_sums

D, Q, POOL = 4, 2, ["rain", "sun", "fog"]  # D numbers of x, and Q of the event in f
RIDGE, SHARED = 0.7, 2.0
FEATURES = {"rain": [0.2, 0.8, 1.0], "sun": [0.9, 0.1, 1.0], "fog": [0.5, 0.5, 1.0]}
OWN = {article: np.array(row) for article, row in FEATURES.items()}


def parted(context: Floats) -> tuple[Floats, Floats]:
    """A context's x, and its e."""
    return np.append(context[: D - 1], context[-1]), context[D - 1 : -1]


class PlainModel:
    """A twin whose articles' features are set anew for each context."""

    def __init__(self, plain: Any) -> None:
        self.plain, self.own = plain, dict(OWN)

    def at(self, context: Floats, article: str) -> Floats:
        x, e = parted(np.asarray(context, np.float64))
        self.plain.features[article] = np.append(self.own[article], e)
        return x

    def learn(self, context: Floats, article: str, payoff: float) -> None:
        self.plain.bound(self.at(context, article), article)
        self.plain.learn(self.at(context, article), article, payoff)

    def bounds(self, contexts: Floats, pool: list[str] = POOL) -> tuple[Floats, Floats]:
        rows = [self.plain.bound(self.at(row, a), a) for row, a in zip(contexts, pool, strict=True)]
        found = np.array(rows)
        return found[:, 0], found[:, 1]


def wide() -> dict[str, Floats]:
    """Articles' features with room for those of the event."""
    return {article: np.append(row, np.zeros(Q)) for article, row in OWN.items()}


def algorithm_2() -> PlainModel:
    return PlainModel(Algorithm2(D, wide(), RIDGE, SHARED))


def made(factored: bool = False, model: Any = None) -> ts.Policy:
    policy = ts.Policy(
        model or ts.HybridLinear(RIDGE, SHARED, event_features=Q), ts.UpperConfidence(0.5)
    )
    for article, row in OWN.items():
        policy.add_article(article, row)
    policy.model.see(D + Q)
    if factored:
        assert policy.model.factorise()
    return policy


def contexts(random: np.random.Generator) -> Floats:
    """One for each article: x is the same but for one number, and e is not."""
    rows = np.repeat(np.append(random.random(D + Q - 1), 1.0)[np.newaxis], len(POOL), axis=0)
    rows[:, D - 2 : -1] = random.random((len(POOL), 1 + Q))
    return rows.astype(np.float32).astype(np.float64)


def trial(random: np.random.Generator) -> tuple[Floats, str, float]:
    rows, place = contexts(random), int(random.integers(len(POOL)))
    x, e = parted(rows[place])
    return rows[place], POOL[place], float(random.random() < 0.2 + 0.3 * x[0] + 0.4 * e[0])


@pytest.mark.parametrize("factored", [False, True])
def test_every_estimate_and_width_is_that_of_algorithm_2(factored: bool) -> None:
    policy, plain, random = made(factored), algorithm_2(), np.random.default_rng(1)
    assert factored or isinstance(policy.model.state, GeneralHybrid)
    for number in range(150):
        rows = contexts(random)
        estimates, widths = plain.bounds(rows)
        assert_allclose(policy.estimates(rows, POOL), estimates, rtol=1e-8)
        assert_allclose(policy.widths(rows, POOL), widths, rtol=1e-8)
        context, article, payoff = trial(random)
        policy.learn(context, article, payoff)
        plain.learn(context, article, payoff)
        if number % 50 == 30:  # an edit beside it
            plain.own["rain"] = random.random(3)
            policy.edit_article("rain", plain.own["rain"])


@pytest.mark.parametrize("factored", [False, True])
def test_halves_may_come_in_any_order(factored: bool) -> None:
    policy, random = made(factored), np.random.default_rng(2)
    plain = StackedRidge(D, RIDGE, SHARED, wide())
    helper = PlainModel(plain)
    trials = [trial(random) for _ in range(60)]
    halves = [(paid, i) for i in range(60) for paid in (False, True)]
    for place in random.permutation(len(halves)):
        paid, i = halves[place]
        context, article, _ = trials[i]
        x = helper.at(context, article)
        policy.paid(context, article, i / 60) if paid else policy.shown(context, article)
        plain.paid(x, article, i / 60) if paid else plain.shown(x, article)
    rows = contexts(random)
    for row, article in zip(rows, POOL, strict=True):
        estimates, widths = plain.bounds(helper.at(row, article), [article])
        assert_allclose(policy.estimates(row, [article]), estimates, rtol=1e-8)
        assert_allclose(policy.widths(row, [article]), widths, rtol=1e-8)


def some_log(events: int = 500, seed: int = 3) -> EventLog:
    """Pools of two or three articles, whose contexts differ."""
    random = np.random.default_rng(seed)
    pools = [POOL, ["sun", "rain"]]
    pool = random.integers(2, size=events)
    rows = [contexts(random)[: len(pools[p])] for p in pool]
    position = [int(random.integers(len(pools[p]))) for p in pool]
    shown = [pools[p][place] for p, place in zip(pool, position, strict=True)]
    users = np.array([row[place] for row, place in zip(rows, position, strict=True)])
    log = EventLog.from_arrays(
        *(users, pools, pool, shown, random.random(events) < 0.2 + 0.5 * users[:, D - 1]),
        articles=OWN,
    )
    varying = np.concatenate(rows)[:, D - 2 : -1].astype(np.float32)
    sizes = log.pool_sizes[log.pool]
    return with_numbers(log, VaryingNumbers(varying, starts_of(sizes)))


def with_numbers(log: EventLog, varying: VaryingNumbers) -> EventLog:
    from dataclasses import replace

    return replace(log, event_numbers=1 + Q, varying=varying, event_features=Q)


class Own:
    """Replayed event by event, since it is not a `Policy`."""

    def __init__(self, policy: ts.Policy) -> None:
        self.policy = policy
        self.choose, self.learn = policy.choose, policy.learn
        self.greedy, self.add_article = policy.greedy, policy.add_article

    def __deepcopy__(self, memo: object) -> Own:
        return Own(self.policy.copy())


@pytest.mark.parametrize("factored", [False, True])
def test_replay_equals_the_plain_loop_to_the_bit(factored: bool) -> None:
    log, policy = some_log(), made(factored)
    fast, plain = ts.replay(policy, log), ts.replay(Own(policy), log)
    assert fast.learning.trials > 100
    np.testing.assert_array_equal(fast.learning.sums, plain.learning.sums)
    np.testing.assert_array_equal(fast.deployment.sums, plain.deployment.sums)
    theirs = plain.policy.policy.model.learned()
    for field, array in fast.policy.model.learned().items():
        np.testing.assert_array_equal(array, theirs[field])


def test_replay_makes_the_decisions_of_a_plain_algorithm_2() -> None:
    """Retained events, one by one, and what became of the model."""
    log, policy, plain = some_log(), made(), algorithm_2()
    retained = 0
    for t in range(len(log)):
        rows, pool = log.contexts(t), list(log.pools[log.pool[t]])
        estimates, widths = plain.bounds(rows, pool)
        scores = estimates + 0.5 * widths
        best, ours = np.argsort(scores)[-2:], policy.choose(rows, pool).article
        if scores[best[1]] - scores[best[0]] > 1e-9:
            assert ours == pool[best[1]]
        shown = log.article_ids[log.shown_index[t]]
        if ours == shown:
            retained += 1
            policy.learn(log.context(t), shown, float(log.payoff[t]))
            plain.learn(log.context(t), shown, float(log.payoff[t]))
    result = ts.replay(made(), log)
    assert result.learning.trials == retained
    rows = contexts(np.random.default_rng(9))
    assert_allclose(result.policy.estimates(rows, POOL), plain.bounds(rows)[0], rtol=1e-8)


def test_training_off_policy_values_and_batches_agree_with_one_event_at_a_time() -> None:
    log, single = some_log(), made()
    for event in log:
        single.learn(event.user, event.shown, event.payoff)
    whole, summed = (
        ts.Policy(ts.HybridLinear(RIDGE, SHARED), ts.UpperConfidence(0.5)) for _ in range(2)
    )
    learn_log(whole, log)  # which says how many numbers are of f
    learn_sums(summed, log, None, engine("serial"))
    assert whole.model.parameters()["event_features"] == Q
    rows = contexts(np.random.default_rng(4))
    assert (whole.scores(rows, POOL) == single.scores(rows, POOL)).all()
    assert_allclose(summed.scores(rows, POOL), single.scores(rows, POOL), rtol=1e-9)
    for row in rows:
        assert (whole.estimates_all([row], POOL)[0] == whole.estimates(row, POOL)).all()
    for greedy in (True, False):
        target = target_of(whole, log, greedy)
        begins, chances = target.all(0, len(log))
        shown = target.shown(0, len(log))
        for t in range(0, len(log), 10):
            asked, pool = log.contexts(t), list(log.pools[log.pool[t]])
            chosen = whole.greedy(asked, pool) if greedy else whole.copy().choose(asked, pool)
            place = int(np.argmax(chances[begins[t] : begins[t] + len(pool)]))
            assert chosen.article == pool[place]
            assert shown[t] == chances[begins[t] + log.position[t]]


def test_weighted_trials_count_as_often_as_they_say() -> None:
    log, policy, plain = some_log(60), made(), StackedRidge(D, RIDGE, SHARED, wide())
    weights = np.random.default_rng(5).choice([0.5, 2.0, 3.0], len(log))
    helper, summed = PlainModel(plain), made()
    learn_log(policy, log, weights)
    learn_sums(summed, log, weights, engine("serial"))
    for event, weight in zip(log, weights, strict=True):
        x = np.sqrt(weight) * helper.at(event.user, event.shown)
        plain.shown(x, event.shown)
        plain.paid(x, event.shown, np.sqrt(weight) * event.payoff)
    for row, article in zip(contexts(np.random.default_rng(6)), POOL, strict=True):
        bound = plain.bounds(helper.at(row, article), [article])
        for each in (policy, summed):
            assert_allclose(each.estimates(row, [article]), bound[0], rtol=1e-8)
            assert_allclose(each.widths(row, [article]), bound[1], rtol=1e-8)


def test_articles_by_the_dozen_come_and_go() -> None:
    """More than there is room for at first."""
    policy, random = made(), np.random.default_rng(11)
    features = {f"new-{i}": random.random(3) for i in range(40)} | OWN
    plain = PlainModel(StackedRidge(D, RIDGE, SHARED, {a: np.zeros(3 + Q) for a in features}))
    plain.own = features
    for article, row in features.items():
        policy.add_article(article, row)
        for _ in range(3):
            context, payoff = trial(random)[::2]
            x = plain.at(context, article)
            policy.learn(context, article, payoff)
            plain.plain.shown(x, article)
            plain.plain.paid(x, article, payoff)
    row, pool = trial(random)[0], ["rain", "new-3", "new-39"]
    for article in pool:
        bound = plain.plain.bounds(plain.at(row, article), [article])
        assert_allclose(policy.estimates(row, [article]), bound[0], rtol=1e-8)
        assert_allclose(policy.widths(row, [article]), bound[1], rtol=1e-8)


@pytest.mark.parametrize("factored", [False, True])
def test_it_is_stored_copied_merged_and_given_another_ridge(factored: bool, tmp_path: Path) -> None:
    policy, random = made(factored), np.random.default_rng(7)
    half, other = made(), made(model=ts.HybridLinear(3.0, 5.0, event_features=Q))
    trials = [trial(random) for _ in range(60)]
    for number, one in enumerate(trials):
        (policy if number < 40 else half).learn(*one)
        other.learn(*one)
    rows = contexts(random)
    policy.save(tmp_path / "policy")
    again = ts.Policy.load(tmp_path / "policy")
    assert (again.scores(rows, POOL) == policy.scores(rows, POOL)).all()
    both = policy.merge(half).with_prior(ridge=3.0, shared_ridge=5.0)
    assert_allclose(both.scores(rows, POOL), other.scores(rows, POOL), rtol=1e-9)
    for one in trials[40:]:
        again.learn(*one)
        policy.learn(*one)
    assert (again.scores(rows, POOL) == policy.scores(rows, POOL)).all()
    again.remove_article("sun")
    again.add_article("new", [0.1, 0.1, 1.0])
    assert np.isfinite(again.scores(rows, ["rain", "new", "fog"])).all()


def test_a_prior_carries_what_the_log_taught_of_the_event() -> None:
    log = some_log(2_000)
    prior = ts.fit_prior(log)
    assert (prior.event_features, prior.features) == (Q, 3 + Q)
    started = ts.policy("linucb-hybrid-prior", prior=prior)
    plain = ts.Policy(ts.HybridLinear(prior.ridge, prior.shared_ridge), ts.UpperConfidence(0.5))
    learn_log(plain, log)
    young, old = contexts(np.random.default_rng(8))[:2].copy()
    young[:], young[D - 1] = old, 1.0
    old[D - 1] = 0.0
    for policy in (started, plain):  # a new article, that is liked where e is large
        policy.add_article("new", [0.5, 0.5, 1.0])
        assert policy.estimates(young, ["new"]) > policy.estimates(old, ["new"]) + 0.2
    with pytest.raises(ValueError, match="numbers of these contexts are features"):
        started.model.use_event_features(1)


def test_logistic_models_take_them_too() -> None:
    model = ts.LogisticHybrid(RIDGE, SHARED, event_features=Q)
    policy, random = made(model=model), np.random.default_rng(10)
    plain = PlainModel(LogisticRegressions(D, wide(), RIDGE, SHARED, 0.05))
    regressions = plain.plain
    regressions.b[-1], regressions.b[-1 - Q] = 0.0, regressions.b[-1]  # where the constants meet
    for number in range(80):
        context, article, payoff = trial(random)
        policy.learn(context, article, payoff)
        plain.learn(context, article, payoff)
        if number % 10 == 9:
            rows = contexts(random)
            estimates, widths = plain.bounds(rows)
            assert_allclose(policy.scores(rows, POOL), estimates + 0.5 * widths, rtol=1e-8)
    log = some_log(200)
    fast, slow = (
        ts.replay(made(model=ts.LogisticHybrid(event_features=Q)), log),
        made(model=ts.LogisticHybrid(event_features=Q)),
    )
    np.testing.assert_array_equal(fast.learning.sums, ts.replay(Own(slow), log).learning.sums)


def test_contexts_of_another_kind_are_refused_by_name() -> None:
    policy = made()
    with pytest.raises(ValueError, match="2 features of the event and the constant"):
        ts.HybridLinear(event_features=Q).see(2)
    with pytest.raises(ValueError, match=r"0 numbers of these contexts .* made for .* with 2"):
        ts.replay(
            policy, EventLog.from_arrays(np.ones((2, D + Q)), [POOL], [0, 0], POOL[:2], [0, 1])
        )
    other = ts.Policy(ts.HybridLinear(RIDGE, SHARED), ts.UpperConfidence(0.5))
    for article, row in OWN.items():
        other.add_article(article, row)
    other.learn(np.ones(D + Q), "rain", 1.0)
    with pytest.raises(ValueError, match=r"2 numbers of these contexts .* made for .* with 0"):
        ts.replay(other, some_log(10))
    with pytest.raises(ValueError, match="other features of the event"):
        made().merge(ts.Policy(ts.HybridLinear(RIDGE, SHARED), ts.UpperConfidence(0.5)))
    with pytest.raises(ScaleError, match="cannot hold the next trial"):
        policy.learn(np.append(np.full(D + Q - 1, 1e8), 1.0), "rain", 1.0)


def test_models_without_article_features_take_them_for_the_users() -> None:
    log = some_log(200)
    result = ts.replay(ts.policy("linucb-disjoint"), log)
    assert result.policy.model.dimension == D + Q
    plain = ts.replay(Own(ts.policy("linucb-disjoint")), log)
    np.testing.assert_array_equal(result.learning.sums, plain.learning.sums)
