"""What a log's own choices earned: what the site does today."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from topstory.evaluation.replays.prepared_log import chunks
from topstory.evaluation.result import Bucket
from topstory.events import EventLog
from topstory.kernels.scans.replay import PAYOFF, TRIALS, WEIGHT, WEIGHTED_PAYOFF


def logged_bucket(log: EventLog, like: Bucket) -> Bucket:
    """What was shown earned, whoever chose it, as sums that compare with a bucket of a replay.

    All events count, also those that rejection sampling loses. Each counts 1/K in the plain sums,
    since a replay retains it with that probability.
    """
    sums = np.zeros_like(like.log_sums)
    for start, stop in chunks(len(log)):
        block = like.blocks.numbers(log, start, stop)
        share = 1.0 / log.pool_sizes[log.pool[start:stop]]
        payoff = log.payoff[start:stop].astype(np.float64)
        columns = ((TRIALS, share), (PAYOFF, share * payoff))
        for column, values in (*columns, (WEIGHT, None), (WEIGHTED_PAYOFF, payoff)):
            sums[:, column] += np.bincount(block, values, minlength=len(sums))
    return replace(like, sums=sums)
