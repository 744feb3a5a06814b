"""Was every article of a pool shown equally often? A chi-square test over the whole log.

Replay is unbiased only on logs whose articles were shown uniformly at random (Li et al. 2010,
Theorem 1). Pools change, so Pearson's statistic is taken in its general form. Over the log,
article a was shown O_a times, and expected E_a = sum_t 1{a in pool_t} / K_t times; the events
are independent, so the vector O - E has covariance

    C = sum_t  diag(1_t) / K_t  -  1_t 1_t' / K_t^2        (1_t: the members of event t's pool)

exactly, and (O - E)' C^+ (O - E) is chi-square with rank(C) degrees of freedom. With one pool
throughout this is Pearson's sum of (O - E)^2 / E.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import BLOCK_ROWS, Floats, blocks
from topstory.events.columns.checks import Mask

if TYPE_CHECKING:
    from topstory.events.log import EventLog


# Expected impressions below which the chi-square approximation is not trusted: 5, less what
# rounding takes from a sum of fractions that is 5 exactly.
MIN_EXPECTED = 5 - 1e-9
MAX_ARTICLES = 2_000  # articles whose covariance is factored: 0.07 s; any sub-vector's is exact
STANDOUT_LEVEL = 0.01  # for all articles together
NEVER_LEVEL = 1e-6  # for one article in one pool


class Standout(msgspec.Struct, frozen=True):
    """An article shown far more, or far less, often than its share."""

    article: str
    shown: int
    expected: float
    z: float  # (shown - expected) / standard deviation


class NeverShown(msgspec.Struct, frozen=True):
    """An article that pools list, though it was never shown from them."""

    article: str
    pools: int  # how many such pools
    events: int  # and how many events they served


class Uniformity(msgspec.Struct, frozen=True):
    """The outcome of the test. A small p-value means not uniform.

    >>> from topstory.events import EventLog
    >>> log = EventLog.from_arrays(
    ...     np.ones((90, 1)), [["a", "b"]], np.zeros(90, int), ["a"] * 80 + ["b"] * 10, np.ones(90)
    ... )
    >>> found = log.uniformity()
    >>> round(found.statistic, 2), found.degrees_of_freedom, found.p_value < 1e-12
    (54.44, 1, True)
    >>> found.standouts[0].article, found.standouts[0].shown, found.standouts[0].expected
    ('a', 80, 45.0)
    """

    statistic: float
    degrees_of_freedom: int  # 0: nothing could be tested
    p_value: float  # 1 if nothing could be tested
    events: int  # those with a choice: pools of one article say nothing
    articles: int  # that entered the statistic
    excluded: int  # in pools, but expected too seldom, or beyond the 2,000 most exposed
    standouts: tuple[Standout, ...]  # by |z|
    never_shown: tuple[NeverShown, ...]  # by events
    not_tested: str | None = None  # why nothing could be tested; None: something was


def uniformity(log: EventLog, keep: Mask | None = None) -> Uniformity:
    """Test all events of the log, or those that `keep` marks."""
    if keep is not None and (keep.dtype != np.bool_ or keep.shape != (len(log),)):
        raise ValueError(
            f"keep must be a mask of {len(log)} events, got {keep.dtype} of shape {keep.shape}"
        )
    counts = shown_counts(log, keep)
    sizes = log.pool_sizes
    served = np.add.reduceat(counts, log.pool_offsets[:-1]) if len(sizes) else sizes  # (P,)
    telling = (sizes > 1) & (served > 0)
    exposure = _Exposure(log, np.where(telling, served, 0), counts * np.repeat(telling, sizes))
    chosen = exposure.most_exposed()
    statistic, freedom = exposure.statistic(chosen)
    tested = int(served[telling].sum())
    return Uniformity(
        statistic=statistic,
        degrees_of_freedom=freedom,
        p_value=chi_square_tail(statistic, freedom),
        events=tested,
        articles=len(chosen),
        excluded=int((exposure.expected > 0).sum()) - len(chosen),
        standouts=exposure.standouts(chosen),
        never_shown=_never_shown(log, counts, served),
        not_tested=None if freedom else _why_not(int(served.sum()), tested),
    )


def _why_not(events: int, telling: int) -> str:
    if not events:
        return "there are no events"
    if not telling:
        return "every pool holds a single article"
    return f"too few events: no article is expected {round(MIN_EXPECTED)} times"


def shown_counts(log: EventLog, keep: Mask | None = None) -> npt.NDArray[np.int64]:
    """(members,) how often each pool showed each of its articles."""
    counts = np.zeros(len(log.pool_members), np.int64)
    for start, stop in blocks(len(log), max(BLOCK_ROWS, len(counts))):
        places = log.pool_offsets[log.pool[start:stop]] + log.position[start:stop]
        if keep is not None:
            places = places[keep[start:stop]]
        counts += np.bincount(places, minlength=len(counts))
    return counts


class _Exposure:
    """Shown, expected and variance of every article, and covariances on demand."""

    def __init__(self, log: EventLog, served: Any, counts: Any) -> None:
        articles = len(log.article_ids)
        share = np.repeat(1.0 / log.pool_sizes, log.pool_sizes)  # (members,) 1/K
        weight = np.repeat(served, log.pool_sizes).astype(np.float64)  # (members,) events

        def total(values: Any) -> Floats:
            return np.bincount(log.pool_members, values, articles).astype(np.float64)

        self._log, self._served = log, served
        self.shown = total(counts)
        self.listed = total(weight)  # events in whose pool the article was
        self.expected = total(weight * share)
        self.variance = total(weight * share * (1 - share))

    def most_exposed(self) -> npt.NDArray[np.intp]:
        enough = np.flatnonzero(self.expected >= MIN_EXPECTED)
        order = np.argsort(-self.expected[enough], kind="stable")
        return np.sort(enough[order[:MAX_ARTICLES]])

    def statistic(self, chosen: npt.NDArray[np.intp]) -> tuple[float, int]:
        from scipy.linalg import cho_factor, cho_solve

        free = self._independent(chosen)
        if not len(free):
            return 0.0, 0
        # Unit diagonal: expected counts may span many orders of magnitude.
        scale = np.sqrt(self.variance[free])
        correlation = self._covariance(free) / np.outer(scale, scale)
        z = (self.shown - self.expected)[free] / scale
        return float(z @ cho_solve(cho_factor(correlation), z)), len(free)

    def _independent(self, chosen: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The chosen articles less one of each group that is linked by pools and wholly chosen.

        x'Cx = sum_t Var_t(x) is 0 only if x is constant over every pool, hence over everything
        that pools link; an article that was left out is an x of 0. So these are all the null
        vectors there are, and dropping one article each leaves C regular and the statistic equal.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        log, members = self._log, self._log.pool_members
        live = np.repeat(self._served > 0, log.pool_sizes)
        first = np.repeat(members[log.pool_offsets[:-1]], log.pool_sizes)
        links = csr_array(
            (np.ones(int(live.sum())), (first[live], members[live])),
            shape=(len(log.article_ids),) * 2,
        )
        _, group = connected_components(links, directed=False)
        left_out = np.ones(len(log.article_ids), bool)
        left_out[chosen] = False
        open_groups = group[np.flatnonzero(left_out & (self.expected > 0))]
        closed = ~np.isin(group[chosen], open_groups)
        _, firsts = np.unique(group[chosen[closed]], return_index=True)
        return np.setdiff1d(chosen, chosen[closed][firsts])

    def _covariance(self, free: npt.NDArray[np.intp]) -> Floats:
        from scipy.sparse import csr_array

        log = self._log
        column = np.full(len(log.article_ids), -1)
        column[free] = np.arange(len(free))
        covariance = np.diag(self.expected[free])
        for start, stop in blocks(len(log.pool_table), BLOCK_ROWS // 16):
            offsets = log.pool_offsets[start : stop + 1]
            columns = column[log.pool_members[offsets[0] : offsets[-1]]]
            rows = np.repeat(np.arange(stop - start), np.diff(offsets))
            wanted = columns >= 0
            # Each pool as a row of sqrt(events)/K, so that the product sums events/K^2.
            weight = np.sqrt(self._served[start:stop]) / log.pool_sizes[start:stop]
            shares = csr_array(
                (weight[rows[wanted]], (rows[wanted], columns[wanted])),
                shape=(stop - start, len(free)),
            )
            covariance -= (shares.T @ shares).toarray()
        return covariance

    def standouts(self, chosen: npt.NDArray[np.intp]) -> tuple[Standout, ...]:
        if not len(chosen):
            return ()
        listed = self.listed[chosen]
        tail = binomial_tail(self.shown[chosen], listed, self.expected[chosen] / listed)
        found = chosen[2 * tail < STANDOUT_LEVEL / len(chosen)]
        z = (self.shown[found] - self.expected[found]) / np.sqrt(self.variance[found])
        return tuple(
            Standout(
                article=self._log.article_ids[found[i]],
                shown=int(self.shown[found[i]]),
                expected=float(self.expected[found[i]]),
                z=float(z[i]),
            )
            for i in np.argsort(-np.abs(z), kind="stable")
        )


def _never_shown(log: EventLog, counts: Any, served: Any) -> tuple[NeverShown, ...]:
    """Listed in a pool so often that never being shown there has a probability below 1e-6."""
    sizes = log.pool_sizes
    # (1 - 1/K)^n < 1e-6; a pool of one has nothing else to show
    surely = served * np.log1p(-1.0 / np.maximum(sizes, 2)) < np.log(NEVER_LEVEL)
    places = np.flatnonzero(np.repeat(surely & (sizes > 1), sizes) & (counts == 0))
    pool = np.searchsorted(log.pool_offsets, places, side="right") - 1
    article, inverse = np.unique(log.pool_members[places], return_inverse=True)
    pools = np.bincount(inverse, minlength=len(article))
    events = np.bincount(inverse, served[pool], minlength=len(article))
    return tuple(
        NeverShown(article=log.article_ids[article[i]], pools=int(pools[i]), events=int(events[i]))
        for i in np.argsort(-events, kind="stable")
    )


def binomial_tail(hits: Any, trials: Any, mean: Any) -> Any:
    """The probability of so many hits or more, or of so many or fewer: the smaller of the two.

    >>> round(float(binomial_tail(0, 3, 0.5)), 3)
    0.125
    """
    from scipy.special import betainc

    # A sum of unequal coin tosses has lighter tails than the binomial of the same mean
    # (Hoeffding 1956), so this never flags too many, and is exact if all pools have one size.
    # A normal tail flags too many: an article expected 5 times of 100, five times too often.
    hits, trials = np.asarray(hits, np.float64), np.asarray(trials, np.float64)
    at_most = betainc(np.maximum(trials - hits, 1e-300), hits + 1, 1 - mean)
    at_least = betainc(np.maximum(hits, 1e-300), trials - hits + 1, mean)
    return np.minimum(np.where(hits == trials, 1, at_most), np.where(hits > 0, at_least, 1))


def chi_square_tail(statistic: Any, freedom: Any) -> Any:
    """The probability of a larger statistic; 1 without degrees of freedom."""
    from scipy.special import chdtrc  # scipy.stats takes a second to import

    tail = np.where(np.asarray(freedom) > 0, chdtrc(np.maximum(freedom, 1), statistic), 1.0)
    return float(tail) if tail.ndim == 0 else tail
