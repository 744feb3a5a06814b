"""What policies know at the start from random exploration: offsets of users, and priors.

The exploration is a log of its own, or else the first tenth of the log to replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from topstory.events import EventLog
from topstory.features.offset import fit_warm_offset
from topstory.models.priors import Prior, fit_prior
from topstory.policies import REGISTRY
from topstory.policies.entries import Setting

MIN_EVENTS = 10  # of a log that has a first tenth


@dataclass(frozen=True)
class WarmStart:
    """What was learned, the log that taught it, and the log that is left to replay."""

    exploration: EventLog
    log: EventLog
    offset: Mapping[str, Any]  # by article; empty if no policy is warm
    first_tenth: bool  # whether `exploration` was cut off the log
    prior: Prior | None = field(default=None, repr=False)  # None if no policy has one

    def argument(self, policy: str) -> dict[str, Any]:
        """What a policy takes of it."""
        if needs_prior(policy):
            return {"prior": self.prior}
        return {"offset": self.offset} if needs_offset(policy) else {}


def needs_offset(policy: str) -> bool:
    """Whether a policy is warm: its model takes offsets.

    >>> needs_offset("ucb-warm"), needs_offset("ucb")
    (True, False)
    """
    return "offset" in REGISTRY[policy].model_parameters


def needs_prior(policy: str) -> bool:
    """Whether a policy starts from a prior that an earlier log taught.

    >>> needs_prior("linucb-hybrid-prior"), needs_prior("linucb-hybrid")
    (True, False)
    """
    return REGISTRY[policy].from_prior


def default_policy(log: EventLog, ridge: Setting | None = None) -> str:
    """The policy where none is named: from a learned prior or, with a ridge, as in the paper.

    Hybrid where articles have features, disjoint where only users have, `ucb` where neither has.

    >>> import numpy as np
    >>> log = EventLog.from_arrays(np.ones((2, 3)), [["a"]], [0, 0], ["a", "a"], [0, 1])
    >>> default_policy(log), default_policy(log, ridge="paper")
    ('linucb-disjoint-prior', 'linucb-disjoint')
    """
    if any(features is not None and len(features) > 1 for features in log.articles.values()):
        name = "linucb-hybrid"
    else:
        name = "linucb-disjoint" if log.dimension > 1 else "ucb"
    return name if ridge is not None else f"{name}-prior"


def split_first_tenth(log: EventLog) -> tuple[EventLog, EventLog]:
    """The first tenth of a log, and the rest."""
    tenth = len(log) // MIN_EVENTS
    return log[:tenth], log[tenth:]


def warm_offset(exploration: EventLog, log: EventLog) -> dict[str, Any]:
    """Offsets for the articles of `log`, fitted on `exploration`."""
    return dict(fit_warm_offset(exploration).table(log.articles))


def needs_exploration(policies: Iterable[str], prior: Prior | None = None) -> bool:
    """Whether a policy has to learn from exploration first; given a `prior`, only offsets are."""
    return any(needs_offset(name) or (prior is None and needs_prior(name)) for name in policies)


def start_of(
    policies: Iterable[str],
    log: EventLog,
    warm_from: EventLog | None = None,
    prior: Prior | None = None,
) -> WarmStart | None:
    """Learn what these policies need from exploration, unless it is given; None if nothing is."""
    names = list(policies)
    if needs_exploration(names, prior):
        offset = any(map(needs_offset, names))
        learned = prior is None and any(map(needs_prior, names))
        return warm_start(log, warm_from, offset=offset, prior=True if learned else prior)
    if prior is not None and any(map(needs_prior, names)):
        return WarmStart(log[:0], log, {}, False, prior)
    return None


def warm_start(
    log: EventLog,
    warm_from: EventLog | None = None,
    *,
    offset: bool = True,
    prior: Prior | bool | None = None,
) -> WarmStart:
    """Learn from `warm_from`, or else from the first tenth of the log; the rest is to be replayed.

    Args:
        log: to replay.
        warm_from: random exploration.
        offset: whether to fit offsets.
        prior: one that is known; or True: fit it, too.

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
            f"the offsets of warm policies and priors need events to be fitted on, and {which} has "
            "none; give a log of random exploration with --warm-from (in Python warm_from=)"
        )
    if exploration.dimension != log.dimension:
        raise ValueError(
            f"the log that offsets and priors are fitted on has contexts of "
            f"{exploration.dimension} features, and the log to replay {log.dimension}; they must "
            "have the same features"
        )
    offsets = warm_offset(exploration, rest) if offset else {}
    found = fit_prior(exploration) if prior is True else (prior or None)
    return WarmStart(exploration, rest, offsets, warm_from is None, found)
