"""Whether a log left anything to chance, and what to do if it did not."""

from __future__ import annotations

import numpy as np

from topstory.events.log import EventLog
from topstory.events.quality.uniformity import shown_counts

SETTLED = 0.999  # of what pools show is their one article: nothing was left to chance


def one_article_each(log: EventLog) -> bool:
    """Whether each pool always shows the same article, so that the log tells nothing of others.

    >>> import topstory as ts
    >>> log = ts.EventLog.from_arrays(np.ones((4, 1)), [["a", "b"]], [0] * 4, ["a"] * 4, [0] * 4)
    >>> one_article_each(log)
    True
    """
    counts, sizes = shown_counts(log), log.pool_sizes
    starts = log.pool_offsets[:-1]
    served, most = np.add.reduceat(counts, starts), np.maximum.reduceat(counts, starts)
    telling = (sizes > 1) & (served > 1)
    return bool(telling.any() and most[telling].sum() >= SETTLED * served[telling].sum())


def no_chance(why: str) -> str:
    """That nothing can be concluded, and what to do.

    >>> no_chance("each pool always shows the same article")[:71]
    'this log left nothing to chance: each pool always shows the same articl'
    """
    return (
        f"this log left nothing to chance: {why}, so nobody can know what another would have "
        "earned. Show a small share of visitors an article at random and record the propensities: "
        "`topstory serve` does both, and `topstory plan` says how many visitors that takes"
    )
