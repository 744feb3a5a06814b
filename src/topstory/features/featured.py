"""A log with other features than it came with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog
from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.visitors import Visitors
from topstory.features.raw_logs import raw_visitors
from topstory.kernels.compilation import Floats


def featured(
    log: EventLog, contexts: npt.NDArray[np.float32], articles: Floats, keep_profiles: bool
) -> EventLog:
    """The raw log's events with these contexts (V, d) and article features (A, m)."""
    visitors = raw_visitors(log)
    return replace(
        log,
        users=contexts[visitors.number],
        visitors=Visitors(visitors.number, contexts, visitors.profiles if keep_profiles else None),
        article_table=ArticleTable(
            log.article_ids, articles, log.article_profiles if keep_profiles else None
        ),
    )
