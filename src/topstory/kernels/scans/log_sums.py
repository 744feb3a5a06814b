"""What a log itself paid, without any policy: sums by block of time and by article."""

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Floats, Slots, compiled
from topstory.kernels.scans.replay import (
    PAYOFF,
    TRIALS,
    WEIGHT,
    WEIGHTED_PAYOFF,
    LogColumns,
    Pools,
    kept,
)


@compiled
def sum_log(
    start: int,
    traffic: LogColumns,
    pools: Pools,
    blocks: Slots,
    log_seed: np.uint64,
    keep: NDArray[np.bool_],
    by_block: Floats,
    by_article: Floats,
) -> None:
    """Sum up the events start, start + 1, …, one for each entry of `blocks`.

    A policy's trials are a 1/K part of the events, so their plain sums compare with sums here that
    are weighted by 1/K: columns TRIALS and PAYOFF. Weighted by K, theirs compare with plain ones
    here: WEIGHT and WEIGHTED_PAYOFF. `keep` says which events are kept, unless it is empty.
    """
    for i in range(blocks.shape[0]):
        t = start + i
        p = traffic.pool[t]
        first = pools.offsets[p]
        pool_size = pools.offsets[p + 1] - first
        keeps = kept(traffic, t, pool_size, log_seed)
        if keep.shape[0]:
            keep[t] = keeps
        if keeps:
            payoff = float(traffic.payoff[t])
            share = 1.0 / pool_size
            by_block[blocks[i], TRIALS] += share
            by_block[blocks[i], PAYOFF] += share * payoff
            by_block[blocks[i], WEIGHT] += 1.0
            by_block[blocks[i], WEIGHTED_PAYOFF] += payoff
            s = pools.slots[first + traffic.position[t]]
            by_article[s, TRIALS] += 1.0
            by_article[s, PAYOFF] += payoff
