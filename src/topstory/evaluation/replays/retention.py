"""Whether a policy retained as many events as chance allows.

Where articles are shown uniformly at random, an event with a pool of K is retained with
probability 1/K, whatever the policy does and has learned. The retained events then number Σ 1/K on
average, and a share far from it says that something is wrong: the log, or the policy.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import exp

from topstory.evaluation.result import Bucket
from topstory.events import Uniformity
from topstory.events.quality.checks import SIGNIFICANCE_LEVEL

ERROR_RATE = 1e-6  # of an alarm, for each bucket of a replay of a uniform log


class RetentionWarning(UserWarning):
    """Far more or fewer events were retained than chance allows: do not use the result.

    >>> issubclass(RetentionWarning, UserWarning)
    True
    """


def probability_bound(retained: float, expected: float) -> float:
    """At least the probability that chance is as far from the expected number, at most 1.

    Freedman's inequality: events are not independent, since the policy learns, but each one's
    chance is known when it comes. The variance of their number is at most the number expected.

    >>> probability_bound(1010, 1000), probability_bound(8439, 1000) < 1e-100
    (1.0, True)
    """
    gap = abs(retained - expected)
    if gap == 0:
        return 1.0
    return min(1.0, 2 * exp(-(gap**2) / (2 * (expected + gap / 3))))


def warn_if_unlikely(policy: object, buckets: Mapping[str, Bucket], uniformity: Uniformity) -> None:
    """Warn if a bucket retained a number of events that chance hardly gives.

    Not of a log that is not uniform: a warning says so already.
    """
    if uniformity.p_value < SIGNIFICANCE_LEVEL:
        return
    for name, bucket in buckets.items():
        if probability_bound(bucket.trials, bucket.expected_trials) < ERROR_RATE:
            warnings.warn(
                f"{policy} retained {bucket.trials:,} events in the {name} bucket, where "
                f"{bucket.expected_trials:,.0f} are expected of any policy if articles were shown "
                "uniformly at random (1 in K; chance is off by as much in fewer than "
                f"{ERROR_RATE:g} of replays): do not use this result before the cause is known",
                RetentionWarning,
                stacklevel=3,
            )
