"""What replay promises beside equality with the paper."""

import warnings
from typing import Any

import numpy as np
import pytest
from tests.models.making_priors import some_prior
from tests.worlds import changing_pools, world

import topstory as ts
from topstory.evaluation import NotUniformWarning
from topstory.policies import REGISTRY

PLACE = world(seed=21)
POOLS = changing_pools(articles=12, size=6, count=10, seed=22)
LOG = PLACE.log(3000, POOLS, np.random.default_rng(23))
OFFSET = dict.fromkeys(PLACE.ids, np.full(4, 0.01))


def make(name: str, seed: int = 0, **parameters: Any) -> ts.Policy:
    if "offset" in REGISTRY[name].model_parameters:
        parameters["offset"] = OFFSET
    if REGISTRY[name].from_prior:
        parameters["prior"] = some_prior(4, PLACE.features.shape[1])
    return ts.policy(name, seed=seed, **parameters)


def same(a: ts.Result, b: ts.Result) -> bool:
    return np.array_equal(a.learning.sums, b.learning.sums) and np.array_equal(
        a.deployment.sums, b.deployment.sums
    )


@pytest.mark.parametrize("name", list(REGISTRY))
def test_the_same_seed_gives_the_same_result_and_the_policy_is_not_changed(name: str) -> None:
    policy = make(name, seed=4)
    first = ts.replay(policy, LOG, size=0.7, seed=1)
    assert policy.decisions == 0
    assert not policy.model.arrays()
    second = ts.replay(policy, LOG, size=0.7, seed=1)
    assert same(first, second)
    for field, array in first.policy.model.arrays().items():
        np.testing.assert_array_equal(array, second.policy.model.arrays()[field])


@pytest.mark.parametrize("name", list(REGISTRY))
def test_size_zero_never_learns(name: str) -> None:
    result = ts.replay(make(name), LOG, size=0.0)
    assert result.learning.trials > 0
    untouched = make(name)
    for a, f in LOG.articles.items():
        untouched.add_article(a, f)
    untouched.model.see(LOG.dimension)
    for field in ("A", "b", "updates", "A0", "b0", "shows", "total"):
        learned, fresh = (p.model.arrays().get(field) for p in (result.policy, untouched))
        # Ignored: a field that the model lacks is None on both sides.
        assert name == "omniscient" or np.array_equal(learned, fresh)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["ucb", "linucb-disjoint", "linucb-hybrid", "egreedy-hybrid"])
def test_deployment_never_learns(name: str) -> None:
    """The state is that of the learning bucket's trials alone."""
    result = ts.replay(make(name), LOG)
    again = make(name)
    for a, f in LOG.articles.items():
        again.add_article(a, f)
    for t in np.flatnonzero(result.learning.sums[:, 0]):
        event = LOG[int(t)]
        again.learn(event.user, event.shown, event.payoff)
    for event in (LOG[0], LOG[2999]):
        pool = list(event.pool)
        np.testing.assert_allclose(
            result.policy.estimates(event.user, pool), again.estimates(event.user, pool), rtol=1e-9
        )


@pytest.mark.parametrize("kind", ["", "-warm", "-seg", "-disjoint", "-hybrid"])
def test_alpha_zero_is_greedy(kind: str) -> None:
    confident = ("linucb" if kind in ("-disjoint", "-hybrid") else "ucb") + kind
    upper = ts.replay(make(confident, alpha=0.0), LOG)
    greedy = ts.replay(make("egreedy" + kind, epsilon=0.0), LOG)
    assert same(upper, greedy)
    np.testing.assert_array_equal(upper.learning.sums, upper.deployment.sums)


@pytest.mark.parametrize("kind", ["", "-warm", "-seg", "-disjoint", "-hybrid"])
def test_epsilon_one_is_random(kind: str) -> None:
    explores = ts.replay(make("egreedy" + kind, epsilon=1.0), LOG)
    random = ts.replay(make("random"), LOG)
    np.testing.assert_array_equal(explores.learning.sums, random.learning.sums)


def test_one_segment_is_context_free() -> None:
    segmented = ts.policy(
        "ucb-seg", segments=1, assignment=lambda users: np.zeros(len(users), int), alpha=0.5
    )
    assert same(ts.replay(segmented, LOG), ts.replay(make("ucb", alpha=0.5), LOG))


def test_segments_are_context_free_copies() -> None:
    """Each segment's users alone, run by a copy of ucb, give the segmented policy's trials."""
    whole = ts.replay(make("ucb-seg", alpha=0.5), LOG)
    segments = np.asarray(LOG.users)[:, :-1].argmax(axis=1)
    copies = [ts.policy("ucb", alpha=0.5) for _ in range(3)]
    retained = []
    for t, event in enumerate(LOG):
        copy = copies[segments[t]]
        copy.decisions = t  # the number of the decision, which its ties hang on
        if copy.choose(event.user, list(event.pool)).article == event.shown:
            retained.append(t)
            copy.learn(event.user, event.shown, event.payoff)
    assert np.flatnonzero(whole.learning.sums[:, 0]).tolist() == retained


def test_every_policy_learns_from_the_same_subset() -> None:
    """An event that two policies retain is learned from by both or by neither."""
    place = world(seed=1, articles=2)
    log = place.log(400, [[0], [1]], np.random.default_rng(0))  # every event is retained
    shows = [
        ts.replay(make(name), log, size=0.25, seed=6).policy.model.arrays()
        for name in ("ucb", "egreedy")
    ]
    np.testing.assert_array_equal(shows[0]["shows"], shows[1]["shows"])
    assert 60 < shows[0]["shows"].sum() < 140
    other = ts.replay(make("ucb"), log, size=0.25, seed=7).policy.model.arrays()
    assert not np.array_equal(shows[0]["total"], other["total"])


def test_an_article_that_returns_finds_its_state() -> None:
    pools = [[0, 1], [1, 2], [0, 1]]
    log = PLACE.log(900, pools, np.random.default_rng(3))
    whole = ts.replay(make("linucb-disjoint"), log)
    gone = ts.replay(ts.replay(make("linucb-disjoint"), log[:300]).policy, log[300:600])
    back = ts.replay(gone.policy, log[600:])
    parts = np.concatenate([gone.learning.sums[:, 0], back.learning.sums[:, 0]])
    np.testing.assert_array_equal(whole.learning.sums[300:, 0], parts)


def test_by_article_adds_up() -> None:
    result = ts.replay(make("linucb-hybrid"), LOG)
    found = result.by_article.values()
    assert sum(a.shown for a in found) == result.learning.trials
    assert sum(a.payoff for a in found) == result.learning.payoff
    assert sum(a.deployed for a in found) == result.deployment.trials
    assert sum(a.base_shown for a in found) == len(LOG)
    best = max(result.by_article, key=lambda a: result.by_article[a].shown)
    rows = LOG.shown == best
    assert result.by_article[best].base_ctr == pytest.approx(LOG.payoff[rows].mean())


def test_windows_add_up() -> None:
    result = ts.replay(make("ucb"), LOG)
    days = result.learning.over_time(hours=24)
    assert len(days) == 125
    assert sum(day.trials for day in days) == result.learning.trials
    assert sum(day.payoff for day in days) == result.learning.payoff
    assert days[1].start - days[0].start == np.timedelta64(1, "D")
    with pytest.raises(ValueError, match=r"multiple of the log's blocks of 1 hours, got 0\.5"):
        result.learning.over_time(hours=0.5)


def test_a_log_of_a_few_hours_has_windows_of_time_too() -> None:
    log = ts.EventLog.from_arrays(
        np.ones((3000, 1)),
        [["a", "b"]],
        [0] * 3000,
        ["a", "b"] * 1500,
        [0, 0, 1] * 1000,
        timestamps=1_241_136_000 + np.arange(3000) * 4,  # three hours and twenty minutes
    )
    found = ts.replay(make("random"), log).learning
    assert [w.start.item().minute for w in found.over_time(hours=1)] == [0, 0, 0, 0]
    assert len(found.over_time(hours=1 / 6)) == 20
    assert sum(w.trials for w in found.over_time(hours=0.5)) == found.trials


def test_plain_and_weighted_ctr_are_the_sums_over_retained_events() -> None:
    result = ts.replay(make("egreedy", epsilon=0.5), LOG)
    t = np.flatnonzero(result.learning.sums[:, 0])
    sizes, payoff = LOG.pool_sizes[LOG.pool].astype(float), LOG.payoff.astype(float)
    assert result.learning.ctr == pytest.approx(payoff[t].mean())
    weighted = (sizes[t] * payoff[t]).sum() / sizes[t].sum()
    assert result.learning.weighted_ctr == pytest.approx(weighted)
    plain_random = (payoff / sizes).sum() / (1 / sizes).sum()
    assert result.learning.relative_ctr == pytest.approx(payoff[t].mean() / plain_random)
    assert result.learning.weighted_relative_ctr == pytest.approx(weighted / LOG.ctr)


def test_pool_weighting_removes_the_bias_of_varying_pools() -> None:
    """Half the time two articles that always pay, half the time ten that never do."""
    sure = world(seed=0, articles=12)
    certain = type(sure)(sure.users, sure.features, np.where(np.arange(12) < 2, 1.0, 0.0)[None])
    certain = type(sure)(sure.users[:1], sure.features, certain.chances)
    log = certain.log(20_000, [[0, 1], list(range(2, 12))], np.random.default_rng(1), hourly=False)
    result = ts.replay(make("random"), log)
    assert result.learning.weighted_ctr == pytest.approx(0.5, abs=0.03)  # what live would pay
    assert result.learning.ctr == pytest.approx(5 / 6, abs=0.03)  # 1/2 : 1/10 of the events


def test_the_papers_omniscient_is_the_best_article_of_each_pool_in_hindsight() -> None:
    result = ts.replay(make("omniscient", folds=1), LOG)
    base = {a: r.base_ctr for a, r in result.by_article.items()}
    best = [max(event.pool, key=lambda a: base[a]) for event in LOG]
    assert np.flatnonzero(result.learning.sums[:, 0]).tolist() == [
        t for t, event in enumerate(LOG) if event.shown == best[t]
    ]


def test_omniscient_chooses_an_event_by_the_other_folds_of_the_log() -> None:
    events, folds = list(LOG), 7
    shows = {(a, f): 0.0 for a in PLACE.ids for f in range(folds)}
    paid = dict(shows)
    for t, event in enumerate(events):
        shows[event.shown, t % folds] += 1
        paid[event.shown, t % folds] += event.payoff

    def ctr(article: str, left_out: int) -> float:
        others = [(article, f) for f in range(folds) if f != left_out]
        return sum(paid[f] for f in others) / sum(shows[f] for f in others)

    best = [
        max(event.pool, key=lambda a, t=t: ctr(a, t % folds))  # type: ignore[misc] # bound now
        for t, event in enumerate(events)
    ]
    result = ts.replay(make("omniscient", folds=folds), LOG)
    for bucket in result.buckets.values():
        assert np.flatnonzero(bucket.sums[:, 0]).tolist() == [
            t for t, event in enumerate(events) if event.shown == best[t]
        ]
    whole = {a: r.base_ctr for a, r in result.by_article.items()}
    pool = list(events[0].pool)
    assert result.policy.choose(LOG.context(0), pool).article == max(pool, key=lambda a: whole[a])


def test_omniscient_is_not_paid_with_the_clicks_that_chose_it() -> None:
    """Where all articles are alike it earns what random ones do; in-sample it seems to earn more.

    20 logs of 2,000 events: the mean has a standard error of 0.03.
    """
    random = np.random.default_rng(4)
    ids = [f"a{i}" for i in range(20)]
    fair, in_sample = [], []
    for _ in range(20):
        shown, clicked = random.choice(ids, 2_000), random.random(2_000) < 0.1
        log = ts.EventLog.from_arrays(np.ones((2_000, 1)), [ids], [0] * 2_000, shown, clicked)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotUniformWarning)
            fair.append(ts.replay(make("omniscient"), log).deployment.relative_ctr)
            in_sample.append(ts.replay(make("omniscient", folds=1), log).deployment.relative_ctr)
    assert np.mean(in_sample) > 1.3
    assert abs(np.mean(fair) - 1) < 0.1


def test_folds_are_a_whole_number() -> None:
    for folds in (0, 2.5, -1):
        with pytest.raises(ValueError, match="folds must be a whole number, 1 or more"):
            ts.policy("omniscient", folds=folds)


class Own:
    """A user's own policy: always the first article that was never shown, else the first."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def choose(self, user: Any, pool: list[str]) -> str:
        return next((a for a in pool if a not in self.seen), pool[0])

    def learn(self, user: Any, article: str, payoff: float) -> None:
        self.seen.append(article)


def test_a_policy_of_ones_own_runs_and_is_not_changed() -> None:
    own, calls = Own(), []
    result = ts.replay(own, LOG, progress=lambda done, total: calls.append((done, total)))
    assert own.seen == []
    assert len(result.policy.seen) == result.learning.trials > 0
    assert result.deployment.trials == 0  # it has no greedy
    with pytest.raises(ValueError, match="only with a method greedy"):
        ts.lift(result, over=ts.replay(make("random"), LOG))
    assert ts.lift(result, ts.replay(make("random"), LOG), bucket="learning").value > -1
    assert calls[-1] == (len(LOG), len(LOG))


def test_what_is_not_a_policy_is_refused() -> None:
    with pytest.raises(TypeError, match=r"got 'ucb': ts.policy\('ucb'\) makes it"):
        ts.replay("ucb", LOG)  # type: ignore[arg-type]  # the mistake under test

    class Wrong(Own):
        def choose(self, user: Any, pool: list[str]) -> str:
            return "nowhere"

    with pytest.raises(ValueError, match="event 0: the policy chose 'nowhere', which is not in"):
        ts.replay(Wrong(), LOG)


@pytest.mark.parametrize("size", [-0.1, 1.1, float("nan")])
def test_a_size_outside_0_to_1_is_refused(size: float) -> None:
    with pytest.raises(ValueError, match="size must be between 0 and 1"):
        ts.replay(make("ucb"), LOG, size=size)


def test_a_context_of_another_length_is_refused() -> None:
    trained = ts.replay(make("linucb-disjoint"), LOG).policy
    with pytest.raises(ValueError, match="a context has 4 features here, got 2"):
        ts.replay(trained, world(seed=0, d=2).log(10, [[0, 1]], np.random.default_rng(0)))


def test_progress_is_reported_and_an_interrupt_stops_it() -> None:
    log = PLACE.log(300_000, [list(range(12))], np.random.default_rng(0), hourly=False)
    done: list[int] = []
    ts.replay(make("ucb"), log, progress=lambda d, total: done.append(d))
    assert done == sorted(done)
    assert done[-1] == len(log)
    assert len(done) > 2

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    policy = make("ucb")
    with pytest.raises(KeyboardInterrupt):
        ts.replay(policy, log, progress=interrupt)
    assert not policy.model.arrays()


def test_an_empty_log_gives_no_trials() -> None:
    result = ts.replay(make("linucb-hybrid"), LOG[:0])
    assert result.learning.trials == result.events == 0
    assert np.isnan(result.learning.ctr)
    assert np.isnan(result.learning.interval.low)


def test_a_log_that_never_pays_has_no_relative_ctr() -> None:
    log = ts.EventLog.from_arrays([[1.0]] * 40, [["a", "b"]], [0] * 40, ["a", "b"] * 20, [0] * 40)
    first, second = ts.replay(make("random"), log), ts.replay(make("ucb"), log)
    assert np.isnan(first.learning.relative_ctr)
    assert np.isnan(first.learning.weighted_relative_ctr)
    assert np.isnan(ts.lift(second, over=first).value)
    assert first.learning.interval.high > 0


def test_a_log_that_is_not_uniform_is_reported_loudly() -> None:
    random = np.random.default_rng(0)
    shown = random.choice(["a", "b"], 2000, p=[0.7, 0.3])
    log = ts.EventLog.from_arrays(np.ones((2000, 1)), [["a", "b"]], [0] * 2000, shown, [0] * 2000)
    with pytest.warns(NotUniformWarning, match=r"not shown uniformly .* standing out: 'a', 'b'"):
        result = ts.replay(make("ucb"), log)
    assert result.uniformity.p_value < 1e-9


def test_a_logger_that_knew_its_users_is_reported_though_margins_are_uniform() -> None:
    random = np.random.default_rng(0)
    users = np.column_stack([random.random(4000), np.ones(4000)])
    articles = [f"a{i}" for i in range(10)]
    shown = [articles[random.integers(5) + 5 * (x > 0.5)] for x in users[:, 0]]
    log = ts.EventLog.from_arrays(users, [articles], [0] * 4000, shown, random.random(4000) < 0.1)
    assert log.uniformity().p_value > 0.001
    with pytest.warns(NotUniformWarning, match=r"random \(segments: .* contexts: a classifier"):
        ts.replay(make("ucb"), log)
    with pytest.warns(NotUniformWarning, match=r"contexts: .*so every value is biased"):
        ts.evaluate(make("ucb"), log)
    with pytest.warns(NotUniformWarning, match="^the log's articles") as said:
        ts.compare(["ucb", "egreedy"], log, repeats=2)
    assert len(said) == 1  # of a log, not of a run


def test_rejection_sampling_makes_a_weighted_log_uniform() -> None:
    weights = np.linspace(1, 3, 12)
    log = PLACE.log(40_000, [list(range(12))], np.random.default_rng(5), False, weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ts.replay(make("random"), log, seed=1)
    least = float((log.propensity * 12).min())
    assert result.lost == pytest.approx(1 - least, abs=0.01)  # E[1/(K p)] = 1 over a pool of K
    assert result.uniformity.p_value > 0.001
    # Unbiased: random's CTR is that of a uniform log of the same world, not this log's own.
    truth = PLACE.chances.mean()
    low, high = result.learning.interval_at(0.999)
    assert low < truth < high
    assert result.random_ctr == pytest.approx(truth, abs=0.01)


def test_a_log_that_rejection_sampling_all_but_empties_is_reported() -> None:
    random = np.random.default_rng(1)
    first = random.random(1000) < 0.99
    log = ts.EventLog.from_arrays(
        np.ones((1000, 1)),
        [["a", "b"]],
        [0] * 1000,
        np.where(first, "a", "b"),
        [0, 1] * 500,
        propensity=np.where(first, 0.99, 0.01),
    )
    with pytest.warns(NotUniformWarning, match=r"keeps only \d+ of 1,000 events"):
        ts.replay(make("ucb"), log)


@pytest.mark.filterwarnings("error")
def test_one_tiny_propensity_does_not_empty_the_log_and_its_bias_is_bounded() -> None:
    random = np.random.default_rng(3)
    first = random.random(10_000) < 0.7
    recorded = np.where(first, 0.7, 0.3)
    clicks = random.random(10_000) < np.where(first, 0.2, 0.1)

    def replayed(propensity: Any) -> Any:
        log = ts.EventLog.from_arrays(
            np.ones((10_000, 1)),
            [["a", "b"]],
            np.zeros(10_000, int),
            np.where(first, "a", "b"),
            clicks,
            propensity=propensity,
        )
        return ts.replay(make("random"), log, seed=1)

    ordinary = replayed(recorded)
    assert ordinary.rejection.rate == np.float32(0.3) * np.float64(2)  # the smallest, as ever
    assert (ordinary.rejection.capped, ordinary.rejection.bias_bound) == (0, 0)

    recorded[4321] = 1e-6
    capped = replayed(recorded)
    assert capped.rejection.capped == 1
    assert capped.rejection.rate == ordinary.rejection.rate
    assert abs(capped.events - ordinary.events) <= 1  # all the others, as before
    assert 0 < capped.rejection.bias_bound < 0.05
    assert abs(capped.random_ctr - ordinary.random_ctr) <= capped.rejection.bias_bound


def test_propensities_that_contradict_the_pools_are_reported() -> None:
    log = ts.EventLog.from_arrays(
        np.ones((1000, 1)),
        [["a", "b"]],
        [0] * 1000,
        ["a", "b"] * 500,
        [0, 1] * 500,
        propensity=np.full(1000, 0.06),
    )
    with pytest.warns(NotUniformWarning, match=r"the mean of 1/\(K p\) is 8.33 where right ones"):
        ts.replay(make("ucb"), log)


def test_rejected_events_teach_nothing() -> None:
    weights = np.linspace(1, 3, 12)
    log = PLACE.log(5000, [list(range(12))], np.random.default_rng(5), False, weights)
    result = ts.replay(make("egreedy", epsilon=1.0), log, seed=1)
    assert result.policy.model.arrays()["shows"].sum() == result.learning.trials
    assert result.learning.trials == pytest.approx(result.events / 12, rel=0.3)


def test_replay_of_a_log_that_left_nothing_to_chance_says_that_nobody_can_know() -> None:
    log = ts.EventLog.from_arrays(
        np.ones((400, 1)), [["a", "b"]], np.zeros(400, int), ["a"] * 400, [0, 1] * 200
    )
    with pytest.warns(NotUniformWarning, match="each pool always shows the same article, so nobo"):
        ts.replay(ts.policy("egreedy"), log)
    with pytest.warns(NotUniformWarning, match="of what was shown, not of the policies"):
        ts.compare(["egreedy", "ucb"], log, repeats=2)
