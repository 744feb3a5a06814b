"""The policies to be evaluated, as the probabilities with which they would show an article."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from topstory.events import EventLog
from topstory.explorers import Greedy
from topstory.explorers.explorer import WORK
from topstory.kernels.compilation import Counters, Floats
from topstory.kernels.contexts import Dense
from topstory.kernels.event_features import Context, featured_scratch
from topstory.kernels.explorers.bounds import Bounds
from topstory.kernels.scans.replay import KINDS, MANY_POOLS, Pools
from topstory.kernels.scans.targets import score_pools, shown_chances, spread_chances
from topstory.models.contexts import scoring_rows
from topstory.models.input_range import NotFiniteError
from topstory.policies import Policy


class FixedPolicy(Protocol):
    """A policy of one's own: it says how likely it is to show each article of a pool."""

    def probabilities(self, user: Any, pool: Any, /) -> Any:
        """(len(pool),) the probabilities, which add up to 1."""


class Target(Protocol):
    """A policy on a log."""

    def shown(self, start: int, stop: int) -> Floats:
        """(stop − start,) the probability of the article that was shown."""

    def all(self, start: int, stop: int) -> tuple[Counters, Floats]:
        """The probabilities of all articles of each pool, end to end; and where each begins."""


def target_of(policy: Policy | FixedPolicy, log: EventLog, greedy: bool) -> Target:
    """The policy on a log. `greedy`: a `Policy` shows its best estimate, whatever its explorer."""
    if isinstance(policy, Policy):
        fixed = policy.copy()
        fixed.use_contexts_of(log)
        fixed.explorer = Greedy() if greedy else fixed.explorer
        if fixed.model.folds:
            raise ValueError(
                f"{policy} learns from the very log that is to judge it; replay shows its value"
            )
        return CompiledTarget(fixed, log) if fixed.model.compiles else AskedTarget(fixed, log)
    if not callable(getattr(policy, "probabilities", None)):
        raise TypeError(
            "a policy to be evaluated has probabilities(user, pool), one for each article of the "
            f"pool; {type(policy).__name__} has not"
        )
    return AskedTarget(policy, log)


class CompiledTarget:
    """A policy of ours: the kernels score it."""

    def __init__(self, policy: Policy, log: EventLog) -> None:
        self._policy, self._log = policy, log
        self._slots = policy.model.add_all(log.articles)
        policy.model.see(log.dimension, log.event_features)
        members = self._slots[log.pool_members] if len(self._slots) else log.pool_members
        self._pools = Pools(log.pool_offsets, members, policy.model.roster.keys)
        kinds = KINDS if len(log.pool_table) <= MANY_POOLS else 1
        self._winners = np.zeros(max(1, len(log.pool_table)) * kinds, np.int32)
        self._users = log.users if log.exact is None else log.exact.users
        largest = int(np.diff(log.pool_offsets).max(initial=1))
        self._work = np.empty(WORK * largest)

    def shown(self, start: int, stop: int) -> Floats:
        """The probability of the article that was shown."""
        rule = self._policy.explorer.rule
        if not isinstance(rule, Bounds):
            begins, chances = self.all(start, stop)
            return np.asarray(chances[begins + self._log.position[start:stop]])
        found, model, log = np.empty(stop - start), self._policy.model, self._log
        shown_chances(
            start,
            self._rows(),
            log.pool,
            log.position,
            self._pools,
            self._winners,
            model.segments(self._users, start, stop),
            model.kernel_state,
            rule,
            self._policy.trials,
            model.room(log.dimension),
            found,
        )
        self._check(found, np.arange(stop - start), start)
        return found

    def all(self, start: int, stop: int) -> tuple[Counters, Floats]:
        """The probabilities of all articles."""
        begins, size = pool_begins(self._log, start, stop)
        rule, model = self._policy.explorer.rule, self._policy.model
        by_estimates = isinstance(rule, Bounds) and rule.alpha == 0
        estimates, widths = np.empty(size), np.empty(0 if by_estimates else size)
        score_pools(
            start,
            self._rows(),
            self._log.pool,
            self._pools,
            begins,
            model.segments(self._users, start, stop),
            model.kernel_state,
            plain_room(self._log.dimension, model.event_features),
            estimates,
            widths,
        )
        found = np.empty(size)
        spread_chances(rule, begins, self._policy.trials, estimates, widths, self._work, found)
        self._check(found, begins, start)
        return begins, found

    def _rows(self) -> Any:
        # Made for each call: the kernel writes into it, and calls may come from several threads.
        return scoring_rows(self._policy.model, self._log, self._users, self._pools.slots)

    def _check(self, found: Floats, begins: NDArray[np.int64], start: int) -> None:
        bad = np.flatnonzero(np.isnan(found))
        if len(bad):
            event = start + int(np.searchsorted(begins, bad[0], "right")) - 1
            article = self._log.article_ids[self._log.shown_index[event]]
            raise NotFiniteError(self._policy, article, f" at event {event}")


class AskedTarget:
    """A policy of the caller's, or one that asks a function of the caller's: event by event."""

    def __init__(self, policy: FixedPolicy, log: EventLog) -> None:
        self._policy, self._log, self._pools = policy, log, log.pools
        if hasattr(policy, "add_article"):
            for article, features in log.articles.items():
                policy.add_article(article, features)

    def shown(self, start: int, stop: int) -> Floats:
        """The probability of the article that was shown."""
        begins, found = self.all(start, stop)
        return np.asarray(found[begins + self._log.position[start:stop]])

    def all(self, start: int, stop: int) -> tuple[Counters, Floats]:
        """The probabilities of all articles."""
        begins, size = pool_begins(self._log, start, stop)
        found = np.empty(size)
        for t, begin in zip(range(start, stop), begins.tolist(), strict=True):
            pool = self._pools[self._log.pool[t]]
            given = self._policy.probabilities(self._log.contexts(t), list(pool))
            found[begin : begin + len(pool)] = _checked(given, len(pool), t)
        return begins, found


def _checked(given: Any, size: int, t: int) -> Floats:
    chances = np.asarray(given, np.float64)
    if chances.shape != (size,) or not (chances >= 0).all() or abs(chances.sum() - 1) > 1e-6:
        raise ValueError(
            f"event {t}: probabilities(user, pool) must give {size} numbers >= 0 that add up to 1, "
            f"one for each article of the pool, got {given!r}"
        )
    return chances


def pool_begins(log: EventLog, start: int, stop: int) -> tuple[Counters, int]:
    """Where each event's pool begins if all are written end to end; and their length in all."""
    ends = np.cumsum(log.pool_sizes[log.pool[start:stop]])
    begins = np.concatenate(([0], ends[:-1])).astype(np.int64)
    return (begins, int(ends[-1])) if len(ends) else (begins[:0], 0)


def plain_room(dimension: int, event_features: int = 0) -> Context:
    """Room for one context, with loops that are not unrolled: one compilation serves every d."""
    if event_features:
        return featured_scratch(dimension, event_features, unrolled=False)
    return Dense(np.zeros(dimension), (), np.zeros(dimension))
