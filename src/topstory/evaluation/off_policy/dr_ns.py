"""What a policy that learns would earn, from a log that another policy wrote: DR-ns."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from topstory.evaluation.off_policy.candidates import Progress
from topstory.evaluation.off_policy.evaluate import warn_if_not_uniform
from topstory.evaluation.off_policy.quantities import UNKNOWN_QUANTITY, mean_of, ratio_of
from topstory.evaluation.off_policy.value import Quantity
from topstory.evaluation.replays.delay import NOTHING_LATE
from topstory.evaluation.replays.prepared_log import check_range, chunks
from topstory.evaluation.uncertainty.clusters import clustered_sums
from topstory.events import EventLog
from topstory.events.log import check_log
from topstory.explorers.explorer import WORK
from topstory.kernels.compilation import Floats
from topstory.kernels.scans.rejection import (
    ACCEPTED,
    BINS,
    EVENTS,
    EXCESS,
    FACTOR,
    LEAST,
    NUMBERS,
    PAID,
    WEIGHT,
    History,
    learn_by_rejection,
)
from topstory.kernels.scans.replay import KINDS, MANY_POOLS, LogColumns, Memory, Pools, Rule
from topstory.models.contexts import scoring_rows
from topstory.models.input_range import NotFiniteError
from topstory.policies import Policy
from topstory.policies.policy import check_seed

LARGEST_FACTOR = 1.0
ROWS = 2  # of what the kernel fills in


@dataclass(frozen=True)
class LearningValue:
    """What a policy that learns would earn per visit."""

    value: Quantity
    lift: Quantity  # over what was logged
    quantile: float  # q
    trials: int  # events that joined the policy's history
    kept: float  # the same, as a share of the log
    missing: float  # share of the policy's own trials that its history lacks; little if q is 0
    bias_bound: float  # at most so far the value is off by that; it is seldom that much
    events: int
    policy: Policy = field(repr=False)  # as it was in the end
    seconds: float = field(compare=False)


def dr_ns(
    policy: Policy,
    log: EventLog,
    *,
    quantile: float = 0.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> LearningValue:
    """Run a policy that learns over a log of any known propensities (Dudík et al. 2012).

    An event joins the policy's history with probability min(1, c·π/p), so that the history is one
    that the policy could have had. Its value is a mean over all events, doubly robust with the
    log's mean payoff so far. On a uniform log with pools of one size, a policy that does not
    randomise learns from the very events that replay retains.

    Where c·π/p is above 1, events are missing: a share `missing` of the policy's own trials. An
    event that joins is then one of the policy's own but for a probability of at most that (the
    total variation between both), so a history of T trials is one that the policy could have had
    but for T·`missing`. So far, times the range of payoffs, the value can be off (`bias_bound`).

    Args:
        policy: it is not changed; `LearningValue.policy` is what became of it.
        log: what happened, with propensities, unless it is uniform.
        quantile: q. c is the q-quantile of p/π so far. At 0 nothing is missing once the smallest is
            met. A little more makes longer histories, which lack a share of the policy's trials
            (`missing`).
        seed: of the draws that decide which events join.
        progress: called with (what is being done, events done, events in all), now and then.

    Warns:
        NotUniformWarning: the log has no propensities, and its articles were not shown uniformly.
        EstimatedPropensityWarning: its propensities were estimated, not recorded.

    >>> import numpy as np, topstory as ts
    >>> random = np.random.default_rng(0)
    >>> sun = random.random(4000) < 0.3  # what the log shows: mostly rain
    >>> log = ts.EventLog.from_arrays(
    ...     np.ones((4000, 3)), [["rain", "sun"]], np.zeros(4000, int),
    ...     np.where(sun, "sun", "rain"), random.random(4000) < np.where(sun, 0.4, 0.1),
    ...     propensity=np.where(sun, 0.3, 0.7))
    >>> found = ts.dr_ns(ts.policy("egreedy-disjoint", epsilon=0.1), log)
    >>> found.value.interval.low < 0.385 < found.value.interval.high, found.missing < 0.01
    (True, True)
    """
    check_log(log)
    check_seed(seed)
    if not policy.model.compiles or policy.model.folds:
        raise TypeError(f"dr_ns runs policies of topstory that kernels can run, got {policy!r}")
    if not 0 <= quantile < 1:
        raise ValueError(f"quantile must be from 0 to below 1, got {quantile!r}")
    if not len(log):
        raise ValueError("the log has no events, so no policy can learn from it")
    check_range(log)
    warn_if_not_uniform(log)
    began = perf_counter()
    run = _Run(policy.copy(), log, quantile, seed)
    gains = np.empty((ROWS, len(log)))
    for start, stop in chunks(len(log)):
        run.learn(start, stop, gains[:, start:stop])
        if progress is not None:
            progress("learning", stop, len(log))
    run.finish()
    numbers = run.history.numbers
    value, lift = _value(log, gains)
    missing = float(numbers[EXCESS] / numbers[WEIGHT]) if numbers[WEIGHT] else 0.0
    return LearningValue(
        value=value,
        lift=lift,
        quantile=quantile,
        trials=round(float(numbers[ACCEPTED])),
        kept=float(numbers[ACCEPTED] / numbers[EVENTS]),
        missing=missing,
        bias_bound=min(1.0, float(numbers[ACCEPTED]) * missing) * float(np.ptp(log.payoff)),
        events=len(log),
        policy=run.policy,
        seconds=perf_counter() - began,
    )


class _Run:
    """One run: the policy, and what it met so far."""

    def __init__(self, policy: Policy, log: EventLog, quantile: float, seed: int) -> None:
        self.policy, self._log = policy, log
        policy.use_contexts_of(log)
        model = policy.model
        slots = model.add_all(log.articles)
        model.see(log.dimension, log.event_features)
        members = slots[log.pool_members] if len(slots) else log.pool_members
        self._pools = Pools(log.pool_offsets, members, model.roster.keys)
        first = members[log.pool_offsets[:-1]]
        kinds = KINDS if len(first) <= MANY_POOLS else 1
        self._memory = Memory(
            order=np.stack([members, members]),
            champion=np.repeat(first, kinds * 2).reshape(len(first), kinds, 2),
            current=np.array([-1]),
            unusable=np.array([-1, -1]),
            trials=np.array([policy.trials]),
            work=np.empty((3 + WORK) * int(np.diff(log.pool_offsets).max(initial=1))),
            known=NOTHING_LATE,
            waiting=np.zeros(0, np.int32),
            cursor=np.array([0]),
        )
        recorded = log.recorded_propensity
        none = np.zeros(0, np.float32)
        self._traffic = LogColumns(
            contexts=scoring_rows(model, log, log.users, members),
            pool=log.pool,
            position=log.position,
            payoff=log.payoff,
            propensity=none if recorded is None else recorded,
            least=1.0,
        )
        self._rule = Rule(
            explorer=policy.explorer.rule,
            seed=np.uint64(policy.seed),
            first=policy.decisions,
            size=1.0,
            log_seed=np.uint64(seed),
        )
        numbers = np.zeros(NUMBERS)
        numbers[FACTOR], numbers[LEAST], numbers[PAID] = LARGEST_FACTOR, np.inf, 0.0
        limits = np.array([quantile, LARGEST_FACTOR])
        self.history = History(numbers, np.zeros(BINS + 1, np.int64), limits)

    def learn(self, start: int, stop: int, gains: Floats) -> None:
        """Run the events start … stop − 1."""
        model, log = self.policy.model, self._log
        segments = model.segments(log.users, start, stop)
        done = 0
        while done < stop - start:
            out = np.empty((ROWS, stop - start - done))
            more = learn_by_rejection(
                start + done,
                self._traffic,
                self._pools,
                segments[done:],
                model.kernel_state,
                self._rule,
                model.room(log.dimension),
                self._memory,
                self.history,
                out,
            )
            gains[:, done : done + more] = out[:, :more]
            decision, slot = self._memory.unusable
            if decision >= 0:
                where = f" at event {decision - self.policy.decisions}"
                raise NotFiniteError(self.policy, model.roster.ids[slot], where)
            done += more
            if done < stop - start:  # the next trial needs another prior, or form of the state
                model.renew()
                self._memory.current[0] = -1

    def finish(self) -> None:
        """Count what the policy did."""
        self.policy.decisions += len(self._log)
        self.policy.trials = int(self._memory.trials[0])


def _value(log: EventLog, gains: Floats) -> tuple[Quantity, Quantity]:
    """Σ gains / Σ c with its intervals, and the lift over what was logged."""
    payoff = log.payoff

    def columns(start: int, stop: int) -> Floats:
        ones = np.ones(stop - start)
        return np.vstack([gains[:, start:stop], payoff[start:stop], ones]).astype(np.float64)

    sums = clustered_sums(log, ROWS + 2, columns)
    gained, factors, earned, count = sums.total
    value, base = float(gained / factors), float(earned / count)
    gradient = np.array([1.0, -value, 0.0, 0.0]) / factors
    sizes = np.array([0.0, 1.0, 0.0, 0.0])
    found = mean_of(value, sums.error(gradient, sizes))
    if not (value > 0 and base > 0):
        return found, UNKNOWN_QUANTITY
    over = gradient / value - np.array([0.0, 0.0, 1.0, -base]) / count / base
    return found, ratio_of(value / base, sums.error(over, sizes))
