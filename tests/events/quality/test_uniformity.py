"""The uniformity test: its formula, its error rate, and what it points at.

Every statistical test here is seeded, and says how often another seed would fail it."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from topstory.events import EventLog
from topstory.events.quality import uniformity


def log_of(pools: list[list[str]], pool: Any, position: Any) -> EventLog:
    shown = [pools[p][i] for p, i in zip(pool, position, strict=True)]
    return EventLog.from_arrays(np.ones((len(shown), 1)), pools, pool, shown, np.zeros(len(shown)))


def random_log(
    random: np.random.Generator, events: int, pools: list[list[str]], bias: float = 0.0
) -> EventLog:
    """Uniform, but that with probability `bias` the first article of the pool is shown."""
    pool = random.integers(len(pools), size=events)
    sizes = np.array([len(members) for members in pools])[pool]
    position = random.integers(sizes)
    position[random.random(events) < bias] = 0
    return log_of(pools, pool, position)


def random_pools(
    random: np.random.Generator, articles: int, count: int, sizes: tuple[int, int]
) -> list[list[str]]:
    names = np.array([f"a{i}" for i in range(articles)])
    return [
        random.choice(names, random.integers(*sizes), replace=False).tolist() for _ in range(count)
    ]


def naive(log: EventLog) -> tuple[float, int]:
    """The definition, event by event."""
    size = len(log.article_ids)
    index = {key: i for i, key in enumerate(log.article_ids)}
    observed, expected, covariance = np.zeros(size), np.zeros(size), np.zeros((size, size))
    for event in log:
        if len(event.pool) == 1:
            continue
        member: npt.NDArray[np.float64] = np.zeros(size)
        member[[index[key] for key in event.pool]] = 1
        observed[index[event.shown]] += 1
        expected += member / len(event.pool)
        covariance += np.diag(member) / len(event.pool)
        covariance -= np.outer(member, member) / len(event.pool) ** 2
    enough = expected >= uniformity.MIN_EXPECTED
    covariance = covariance[np.ix_(enough, enough)]
    gap = (observed - expected)[enough]
    if not len(gap):
        return 0.0, 0
    inverse = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True)
    return float(gap @ inverse @ gap), int(np.linalg.matrix_rank(covariance, rtol=1e-9))


def test_with_one_pool_it_is_pearson_s_chi_square() -> None:
    counts = [30, 22, 41, 27]
    log = log_of([list("abcd")], np.zeros(120, int), np.repeat(range(4), counts))
    found = log.uniformity()
    pearson = stats.chisquare(counts)
    assert found.statistic == pytest.approx(pearson.statistic, rel=1e-12)
    assert found.p_value == pytest.approx(pearson.pvalue, rel=1e-9)
    assert found.degrees_of_freedom == 3
    assert (found.events, found.articles, found.excluded) == (120, 4, 0)


def test_pools_that_share_nothing_add_up() -> None:
    one, two = [30, 22, 41], [10, 25]
    log = log_of(
        [list("abc"), list("xy")],
        np.repeat([0, 1], [sum(one), sum(two)]),
        np.concatenate([np.repeat(range(3), one), np.repeat(range(2), two)]),
    )
    found = log.uniformity()
    total = stats.chisquare(one).statistic + stats.chisquare(two).statistic
    assert found.statistic == pytest.approx(total, rel=1e-12)
    assert found.degrees_of_freedom == 2 + 1


@given(seed=st.integers(0, 10**6), events=st.integers(0, 300), count=st.integers(1, 6))
@example(seed=147, events=72, count=5)  # an article expected 5 times, on the verge of too few
def test_it_equals_the_definition(seed: int, events: int, count: int) -> None:
    random = np.random.default_rng(seed)
    log = random_log(random, events, random_pools(random, 8, count, (1, 6)))
    statistic, rank = naive(log)
    found = log.uniformity()
    assert found.degrees_of_freedom == rank
    assert found.statistic == pytest.approx(statistic, rel=1e-6, abs=1e-9)


def test_one_pool_per_event_gives_what_shared_pools_give() -> None:
    random = np.random.default_rng(0)
    shared = random_log(random, 2000, random_pools(random, 30, 12, (2, 9)))
    pools = shared.pools
    apart = EventLog.from_arrays(
        shared.users,
        [pools[p] for p in shared.pool],
        np.arange(len(shared)),
        shared.shown,
        shared.payoff,
        articles=shared.articles,
    )
    mine, theirs = shared.uniformity(), apart.uniformity()
    assert mine.statistic == pytest.approx(theirs.statistic, rel=1e-9)
    assert mine.degrees_of_freedom == theirs.degrees_of_freedom


def test_p_values_of_uniform_logs_are_uniform() -> None:
    """Kolmogorov-Smirnov over 300 logs, at 0.1 %: one seed in a thousand would fail."""
    random = np.random.default_rng(1)
    p_values = []
    for _ in range(300):
        pools = random_pools(random, 40, 15, (2, 20))
        p_values.append(random_log(random, 4000, pools).uniformity().p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


def test_p_values_are_uniform_when_articles_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of the articles has an exact covariance too. One seed in a thousand would fail."""
    monkeypatch.setattr(uniformity, "MAX_ARTICLES", 10)
    random = np.random.default_rng(2)
    p_values = []
    for _ in range(300):
        found = random_log(random, 3000, random_pools(random, 40, 15, (2, 20))).uniformity()
        assert (found.articles, found.degrees_of_freedom) == (10, 10)
        assert found.excluded > 0
        p_values.append(found.p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


def shift(pools: list[list[str]], events: int, bias: float) -> tuple[float, int]:
    """How far `bias` moves the statistic's mean (its noncentrality), and its rank."""
    index = {key: i for i, key in enumerate(sorted({key for pool in pools for key in pool}))}
    gap, covariance = np.zeros(len(index)), np.zeros((len(index), len(index)))
    each = events / len(pools)
    for pool in pools:
        member = np.zeros(len(index))
        member[[index[key] for key in pool]] = 1
        gap -= bias * each * member / len(pool)
        gap[index[pool[0]]] += bias * each
        covariance += each * np.diag(member) / len(pool)
        covariance -= each * np.outer(member, member) / len(pool) ** 2
    inverse = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True)
    return float(gap @ inverse @ gap), int(np.linalg.matrix_rank(covariance, rtol=1e-9))


def test_a_slight_bias_moves_the_statistic_as_far_as_theory_says() -> None:
    """Mean of 200 logs within 4 standard errors: one seed in 16,000 would fail."""
    random = np.random.default_rng(3)
    pools = random_pools(random, 40, 15, (5, 20))
    found = [random_log(random, 10_000, pools, bias=0.05).uniformity() for _ in range(200)]
    noncentrality, rank = shift(pools, 10_000, 0.05)
    assert {one.degrees_of_freedom for one in found} == {rank}
    theory = stats.ncx2(rank, noncentrality)
    mean = np.mean([one.statistic for one in found])
    assert abs(mean - theory.mean()) < 4 * theory.std() / np.sqrt(200)


def test_a_biased_log_is_detected() -> None:
    """One event in ten favours the pool's first article: at 1e-6 theory misses 1 log in 10^9."""
    random = np.random.default_rng(3)
    pools = random_pools(random, 40, 15, (5, 20))
    noncentrality, rank = shift(pools, 10_000, 0.1)
    assert stats.ncx2.cdf(stats.chi2.isf(1e-6, rank), rank, noncentrality) < 1e-9
    found = [random_log(random, 10_000, pools, bias=0.1).uniformity() for _ in range(20)]
    assert max(one.p_value for one in found) < 1e-6


def test_only_kept_events_are_tested() -> None:
    random = np.random.default_rng(4)
    log = random_log(random, 5000, random_pools(random, 20, 5, (2, 9)))
    keep = random.random(5000) < 0.5
    assert log.uniformity(keep) == log[keep].uniformity()
    assert log.uniformity(np.ones(5000, bool)) == log.uniformity()
    with pytest.raises(ValueError, match="keep must be a mask of 5000 events"):
        log.uniformity(np.ones(3, bool))


class TestStandouts:
    def test_the_favoured_article_stands_out_most(self) -> None:
        random = np.random.default_rng(5)
        pools = [[f"a{i}" for i in range(20)]]
        found = random_log(random, 20_000, pools, bias=0.05).uniformity()
        worst = found.standouts[0]
        assert worst.article == "a0"
        assert worst.expected == 1000
        assert worst.shown > 1800
        assert worst.z == pytest.approx((worst.shown - 1000) / np.sqrt(20_000 * 0.05 * 0.95))
        sizes = [abs(standout.z) for standout in found.standouts]
        assert sizes == sorted(sizes, reverse=True)

    def test_an_article_never_shown_stands_out(self) -> None:
        log = log_of([list("abc")], np.zeros(300, int), np.arange(300) % 2)
        found = {standout.article: standout for standout in log.uniformity().standouts}
        assert found["c"].shown == 0
        assert found["c"].z < -10

    def test_uniform_logs_have_a_standout_once_in_a_hundred(self) -> None:
        """Articles expected about 6 times, where a normal tail would raise too many alarms.

        At most 1 % of logs by design; 500 logs have more than 14 with probability 2e-4."""
        random = np.random.default_rng(6)
        pools = random_pools(random, 100, 20, (10, 40))
        logs = (random_log(random, 600, pools) for _ in range(500))
        assert sum(len(log.uniformity().standouts) > 0 for log in logs) <= 14


class TestNeverShown:
    def test_an_article_of_the_change_over_is_named(self) -> None:
        random = np.random.default_rng(7)
        pools = [list("abcde"), list("abcdef"), list("abcdf")]
        pool = np.repeat([0, 1, 2], [1000, 400, 1000])
        position = random.integers(5, size=2400)  # so 'f' is not shown from pool 1 yet
        found = log_of(pools, pool, position).uniformity()
        assert [(n.article, n.pools, n.events) for n in found.never_shown] == [("f", 1, 400)]

    def test_a_pool_that_served_few_events_accuses_nobody(self) -> None:
        # (1/2)^19 > 1e-6 > (1/2)^20
        for events, accused in ((19, 0), (20, 1)):
            log = log_of([list("ab")], np.zeros(events, int), np.zeros(events, int))
            assert len(log.uniformity().never_shown) == accused


@pytest.mark.parametrize(
    ("pools", "events"), [([], 0), ([["a"]], 0), ([["a"]], 50), ([["a", "b"]], 4)]
)
def test_where_nothing_can_be_tested_nothing_is_accused(
    pools: list[list[str]], events: int
) -> None:
    found = log_of(pools, np.zeros(events, int), np.zeros(events, int)).uniformity()
    assert (found.statistic, found.degrees_of_freedom, found.p_value) == (0.0, 0, 1.0)
    assert found.standouts == ()
    assert found.never_shown == ()


def test_pools_of_one_article_say_nothing() -> None:
    random = np.random.default_rng(8)
    log = random_log(random, 1000, [list("abc")])
    alone = log_of([["a"]], np.zeros(500, int), np.zeros(500, int))
    mine, both = log.uniformity(), EventLog.concat([log, alone]).uniformity()
    assert both == mine
    assert both.events == 1000


def test_thousands_of_articles_are_tested_by_the_most_exposed() -> None:
    random = np.random.default_rng(9)
    names = [f"a{i}" for i in range(2500)]
    found = random_log(random, 30_000, [names, names[:2200]]).uniformity()
    assert (found.articles, found.excluded, found.degrees_of_freedom) == (2000, 500, 2000)
    assert found.p_value > 1e-4
