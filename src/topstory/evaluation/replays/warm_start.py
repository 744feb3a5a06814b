"""What warm policies know at the start: user-specific offsets, fitted on random exploration.

The exploration is a log of its own, or else the first tenth of the log to replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from topstory.events import EventLog
from topstory.features.offset import fit_warm_offset
from topstory.policies import REGISTRY

MIN_EVENTS = 10  # of a log that has a first tenth


@dataclass(frozen=True)
class WarmStart:
    """The offsets, the log that they were fitted on, and the log that is left to replay."""

    exploration: EventLog
    log: EventLog
    offset: Mapping[str, Any]  # by article
    first_tenth: bool  # whether `exploration` was cut off the log


def needs_offset(policy: str) -> bool:
    """Whether a policy is warm: its model takes offsets.

    >>> needs_offset("ucb-warm"), needs_offset("ucb")
    (True, False)
    """
    return "offset" in REGISTRY[policy].model_parameters


def split_first_tenth(log: EventLog) -> tuple[EventLog, EventLog]:
    """The first tenth of a log, and the rest."""
    tenth = len(log) // MIN_EVENTS
    return log[:tenth], log[tenth:]


def warm_offset(exploration: EventLog, log: EventLog) -> dict[str, Any]:
    """Offsets for the articles of `log`, fitted on `exploration`."""
    return dict(fit_warm_offset(exploration).table(log.articles))


def warm_start(log: EventLog, warm_from: EventLog | None = None) -> WarmStart:
    """Fit offsets on `warm_from`, or else on the first tenth of the log; then replay the rest.

    >>> import numpy as np
    >>> log = EventLog.from_arrays(np.ones((50, 1)), [["a"]], [0] * 50, ["a"] * 50, [0, 1] * 25)
    >>> start = warm_start(log)
    >>> len(start.exploration), len(start.log), list(start.offset)
    (5, 45, ['a'])
    """
    if warm_from is None:
        exploration, rest = split_first_tenth(log)
    else:
        exploration, rest = warm_from, log
    if not len(exploration):
        which = "the first tenth of the log" if warm_from is None else "the log to fit them on"
        raise ValueError(
            f"the offsets of warm policies need events to be fitted on, and {which} has none; give "
            "a log of random exploration with --warm-from (in Python warm_from=)"
        )
    if exploration.dimension != log.dimension:
        raise ValueError(
            f"the log that offsets are fitted on has contexts of {exploration.dimension} features, "
            f"and the log to replay {log.dimension}; they must have the same features"
        )
    return WarmStart(exploration, rest, warm_offset(exploration, rest), warm_from is None)
