"""How much a policy's CTR differs between the days of a log, which no interval shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topstory.evaluation import Bucket
from topstory.kernels.scans.replay import PAYOFF, TRIALS

MIN_SHARE = 0.5  # of a mean day's trials: a shorter piece of a day is not counted as one


def day_ctrs(buckets: Sequence[Bucket]) -> tuple[tuple[str, float], ...]:
    """The date (UTC) and the relative CTR of each day; empty for less than two days.

    The CTR of each day is divided by random articles' on the same day.
    """
    first = buckets[0]
    if first.blocks.origin is None:
        return ()
    days, place = np.unique(first.blocks.starts().astype("M8[D]"), return_inverse=True)
    ours, base = np.zeros((len(days), 2)), np.zeros((len(days), 2))
    for bucket in buckets:
        for sums, total in ((bucket.sums, ours), (bucket.log_sums, base)):
            np.add.at(total, place, sums[:, [TRIALS, PAYOFF]])
    whole = (ours[:, 0] >= MIN_SHARE * ours[:, 0].mean()) & (base[:, 1] > 0)
    found = [
        (str(day), float(our[1] / our[0] / (log[1] / log[0])))
        for day, our, log in zip(days[whole], ours[whole], base[whole], strict=True)
    ]
    return tuple(found) if len(found) > 1 else ()


def spread(days: Sequence[tuple[str, float]]) -> float | None:
    """The standard deviation between days; None for less than two.

    >>> round(spread([("2009-05-03", 1.5), ("2009-05-04", 1.7)]), 3)
    0.141
    """
    return float(np.std([ctr for _, ctr in days], ddof=1)) if len(days) > 1 else None
