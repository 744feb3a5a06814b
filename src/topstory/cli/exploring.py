"""Where the warm policies' offsets come from: another log, or the first tenth of the log itself."""

from __future__ import annotations

from typing import NamedTuple

import topstory as ts

FIRST_TENTH = "first tenth"


class Source(NamedTuple):
    """A log, and what people call it."""

    name: str
    log: ts.EventLog


class Explored(NamedTuple):
    """What offsets were fitted on, the offsets, and the log that is left to replay."""

    source: Source
    offset: dict[str, object]
    log: ts.EventLog


def explored(source: Source, warm_from: Source | None) -> Explored:
    """Offsets fitted on `warm_from`, or on the log's first tenth: then the rest is to replay."""
    log, fitted_on = source.log, warm_from
    if fitted_on is None:
        tenth = len(log) // 10
        fitted_on, log = Source(FIRST_TENTH, log[:tenth]), log[tenth:]
    if not len(fitted_on.log):
        raise ValueError(
            f"{fitted_on.name}: there are no events to fit the warm policies' offsets on; "
            "name another log with --warm-from"
        )
    if fitted_on.log.dimension != log.dimension:
        raise ValueError(
            f"{fitted_on.name}: its contexts have {fitted_on.log.dimension} features, those of "
            f"the log to replay {log.dimension}; offsets carry over between equals only"
        )
    return Explored(fitted_on, dict(ts.fit_warm_offset(fitted_on.log).table(log.articles)), log)
