"""Rejection sampling by recorded propensities: at which rate, what survives, and how biased it is.

An event that showed its article with probability p, from a pool of K, has the weight w = 1/(K p).
Keeping it with probability min(1, c w) makes the articles of the survivors uniform wherever
c w <= 1. With c = min K p that is everywhere, but then one event with p = 1e-6 empties the log. So
a few events may be capped: they have c w > 1, and are kept once, which is not often enough.

The rule: at most MAX_CAPPED of the events may be capped, as long as the mean of their capped
weights stays above 1 - MAX_MISSING (below: the bias); and of those as few as leave half of the
survivors that capping more would. Where the smallest K p is no outlier, none are.

The bias: honest propensities have E w = 1, so 1 - E min(w, 1/c) is the share of uniform traffic
that is missing from the survivors: at most that share of the payoff's range is the error of a mean
over all traffic. A policy that would have met all of it has a share of E 1/K of uniform traffic to
be estimated from, so its CTR is off by at most `missing / E 1/K` of the range.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from topstory.events.columns.array_record import Floats, blocks
from topstory.events.columns.checks import Mask

if TYPE_CHECKING:
    from topstory.events.log import EventLog

MAX_CAPPED = 1 / 1000  # of the events
MIN_EVENTS = 100  # of a log that may have one event capped
MAX_MISSING = 0.05  # of uniform traffic
STREAM = 0xA4093822
BOUND_QUANTILE = 1.645  # the bias bound is a one-sided 95 % limit
INTERVAL_QUANTILE = 3.291  # an honest log's interval misses 1 once in a thousand


class Rejection(msgspec.Struct, frozen=True):
    """What rejection sampling does to a log whose propensities are not uniform.

    >>> from topstory.events import EventLog
    >>> log = EventLog.from_arrays(
    ...     np.ones((1000, 1)), [["a", "b"]], [0] * 1000, ["a"] * 800 + ["b"] * 200, np.ones(1000),
    ...     propensity=[0.8] * 800 + [0.2] * 200)
    >>> found = rejection(log)
    >>> round(found.rate, 6), round(found.survivors), found.capped, round(found.mean_weight, 6)
    (0.4, 400, 0, 1.0)
    """

    rate: float  # c: an event is kept with probability min(1, c / (K p))
    survivors: float  # how many events are kept, on average
    capped: int  # events with K p < c: kept once, where uniform traffic has more of them
    mean_weight: float  # of min(w, 1/c); 1 if the propensities are right
    interval: tuple[float, float]  # of it, at 99.9 %
    missing: float  # upper 95 % limit of the share of uniform traffic that capping takes away
    bias_bound: float  # of a policy's CTR, in the payoff's units; 0 if no event is capped

    @property
    def honest(self) -> bool:
        """Whether the mean weight is 1, within its interval."""
        return self.interval[0] <= 1.0 <= self.interval[1]


def rejection(log: EventLog) -> Rejection | None:
    """The rate for a log, and what it gives; None for a log that counts as uniform."""
    if log.recorded_propensity is None or not len(log):
        return None
    rate, capped = _rate(log)
    total = squares = match = 0.0
    for start, stop, ratio in _ratios(log):
        match += float((1.0 / log.pool_sizes[log.pool[start:stop]]).sum())
        weight = 1.0 / np.maximum(ratio, rate)
        total += float(weight.sum())
        squares += float(weight @ weight)
    mean = total / len(log)
    # Articles so rare that the log has too few of them take from the mean and from the variance
    # alike: what is missing from a mean of 1 had weights of up to 1/c.
    variance = squares / len(log) + max(0.0, 1.0 - mean) / rate - mean**2
    error = float(np.sqrt(max(variance, 0.0) / len(log)))
    rounding = 1e-5  # propensities are kept as float32
    half = INTERVAL_QUANTILE * error + rounding
    missing = min(1.0, max(0.0, 1.0 - mean + BOUND_QUANTILE * error)) if capped else 0.0
    spread = float(log.payoff.max()) - float(log.payoff.min())
    return Rejection(
        rate=rate,
        survivors=rate * total,
        capped=capped,
        mean_weight=mean,
        interval=(mean - half, mean + half),
        missing=missing,
        bias_bound=spread * min(1.0, missing * len(log) / match),
    )


def survivors(log: EventLog, rate: float, seed: int = 0) -> Mask:
    """(n,) one draw of the events that are kept."""
    # Not the plain seed: a log simulated with the same one would meet the draws it was made of.
    random = np.random.default_rng((STREAM, seed))
    keep = np.zeros(len(log), bool)
    for start, stop, ratio in _ratios(log):
        keep[start:stop] = random.random(stop - start) < rate / ratio
    return keep


def _rate(log: EventLog) -> tuple[float, int]:
    """c, and how many events have K p below it."""
    most = int(len(log) * MAX_CAPPED)
    if len(log) >= MIN_EVENTS:
        most = max(most, 1)
    rates: Floats = np.zeros(0)  # the smallest K p: of those that may be capped, and the next one
    total = 0.0
    for _, _, ratio in _ratios(log):
        total += float((1.0 / ratio).sum())
        rates = np.concatenate((rates, ratio))
        if len(rates) > most + 1:
            rates = np.partition(rates, most)[: most + 1]
    rates = np.sort(rates)
    # With c = rates[i], the i events before it are kept once each, the others c w times on average.
    before = np.concatenate(([0.0], np.cumsum(1.0 / rates[:-1])))
    left = np.arange(len(rates)) + rates * (total - before)
    allowed = left / (rates * len(log)) >= 1 - MAX_MISSING
    allowed[0] = True
    rate = rates[np.argmax(left >= left[allowed].max() / 2)]
    return float(rate), int((rates < rate).sum())


def _ratios(log: EventLog) -> Iterator[tuple[int, int, Floats]]:
    """(start, stop, K p of these events), block by block."""
    for start, stop in blocks(len(log)):
        sizes = log.pool_sizes[log.pool[start:stop]].astype(np.float64)
        yield start, stop, sizes * log.propensity[start:stop]
