"""Training: a policy learns from every event of a log, and is judged on the log's last part.

Replay learns from the events in which the policy agrees with the log, one in K. That is how the
policy would have learned live, but it is a waste where only the trained policy is wanted: given
context and article, a payoff does not depend on why the article was shown. So a linear model may
learn from all of them, however they were chosen. An average over users may not: if an article was
shown to those who like it, its mean is theirs. Weights of 1/(K·propensity) correct that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topstory.engines import Engine
from topstory.engines import engine as named_engine
from topstory.evaluation.replays.prepared_log import (
    NotUniformWarning,
    check_range,
    warn_if_estimated,
)
from topstory.evaluation.replays.replay import replay
from topstory.evaluation.result import Result
from topstory.events import EventLog
from topstory.events.folder.parts import LogFolder, LogPart
from topstory.events.log import check_log
from topstory.kernels.compilation import Floats
from topstory.models.linear import LinearModel
from topstory.models.priors.sums import ArticleSums
from topstory.policies import Policy
from topstory.policies.policy import check_seed
from topstory.policies.sum_learner import LogKind, absorb_apart, learn_every, sums_apart

if TYPE_CHECKING:
    from topstory.features import FeatureBuilder

NONE, PROPENSITY = "none", "propensity"
HELD_OUT = 0.1
MAX_WEIGHT = 10.0  # a larger weight makes the few events that have it decide alone

Progress = Callable[[str, float, float], object]


@dataclass(frozen=True)
class Training:
    """A trained policy, and what it is worth on events that it had not seen."""

    policy: Policy = field(repr=False)
    events: int  # that it learned from
    effective_events: float  # so many equally weighted ones are as good: (Σw)²/Σw²
    capped: int  # events whose weight was limited to `MAX_WEIGHT`
    held_out: Result | None = field(repr=False)  # of the policy before it learned these, too
    held_out_events: int  # at the end of the log
    refitted: bool  # whether the policy learned the held-out events as well, after they judged it
    seconds: float  # that learning took
    payoffs: tuple[float, float] = (0.0, 0.0)  # the least and the largest that it learned


def train(
    policy: Policy,
    log: EventLog | str | PathLike[str],
    *,
    weights: str = NONE,
    held_out: float = HELD_OUT,
    refit: bool = True,
    features: FeatureBuilder | None = None,
    engine: str | Engine | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Training:
    """Let a policy learn from every event of a log, in its order.

    The last part of the log is held out first: the policy that the rest taught is replayed there,
    without learning, which says what it is worth. Then it learns that part as well.

    Args:
        policy: what to train, new or trained before. It is not changed; `Training.policy` is.
        log: what happened, or the folder or URL of a log, which is read in parts: so it may be
            larger than memory, except for the part that is held out.
        weights: `none`, or `propensity`: each event counts 1/(K·propensity) times, at most 10. A
            linear model needs none. An average over users does, unless the log is uniform.
        held_out: the share of the events, at the end, to judge the policy on; 0: none.
        refit: whether to learn the held-out events as well, once they have judged the policy.
        features: makes contexts and article features of raw profiles.
        engine: `serial`, `local` (all cores), `ray` or an engine: parts of the log are summed
            there, and the sums added up; Ray's workers read a folder's parts by themselves. The
            policy is the same to 1e-9, and does not depend on the engine; a prior is weighed once,
            by all events. By default it learns event by event, as `policy.learn` does, to the bit;
            but a hybrid model whose context times article features are more than 100 numbers
            learns by sums, as with `serial`.
        seed: for rejection sampling, where the held-out events have propensities.
        progress: called with (what is being done, events done, events in all), now and then.

    Warns:
        NotUniformWarning: the held-out part was not shown uniformly at random, so that the replay
            on it is biased; or averages are learned from such a log without weights.

    >>> import topstory as ts
    >>> random = np.random.default_rng(0)
    >>> shown = random.choice(["rain", "sun"], 2000)
    >>> clicked = random.random(2000) < np.where(shown == "sun", 0.4, 0.1)
    >>> log = ts.EventLog.from_arrays(
    ...     np.ones((2000, 1)), [["rain", "sun"]], np.zeros(2000, int), shown, clicked
    ... )
    >>> training = ts.train(ts.policy("linucb-disjoint", alpha=0.1), log)
    >>> training.policy.estimates([1.0], ["rain", "sun"]).round(1)
    array([0.1, 0.4])
    >>> training.events, training.held_out_events, training.held_out.deployment.relative_ctr > 1.3
    (2000, 200, True)
    """
    _check(policy, weights, held_out, seed)
    if not isinstance(log, str | PathLike):
        check_log(log)
    source = _Source(log if isinstance(log, EventLog) else LogFolder.opened(log), features)
    events = source.events
    if not events:
        raise ValueError("the log has no events, so there is nothing to learn")
    cut = events - round(held_out * events)
    if not cut:
        raise ValueError(f"held_out is {held_out}, which leaves nothing to learn from")
    where = None if engine is None else named_engine(engine)
    run = _Run(policy.copy(), source, weights, seed, progress, where)
    run.learn(0, cut)
    found = run.judge(cut, events) if cut < events else None
    if refit and cut < events:
        run.learn(cut, events)
    return Training(
        policy=run.policy,
        events=run.learned,
        effective_events=run.total**2 / run.squares if run.squares else 0.0,
        capped=run.capped,
        held_out=found,
        held_out_events=events - cut,
        refitted=refit and cut < events,
        seconds=run.seconds,
        payoffs=(run.least, run.most),
    )


def _check(policy: Policy, weights: str, held_out: float, seed: int) -> None:
    if not isinstance(policy, Policy):
        raise TypeError(
            f"policy must be a topstory.Policy, such as ts.policy('linucb-hybrid'), got {policy!r}"
        )
    if not policy.model.learns:
        raise ValueError(f"{policy} learns nothing from trials, so it cannot be trained")
    if weights not in (NONE, PROPENSITY):
        raise ValueError(f"weights must be '{NONE}' or '{PROPENSITY}', got {weights!r}")
    if not 0 <= held_out < 1:
        raise ValueError(f"held_out must be a share from 0 to below 1, got {held_out!r}")
    check_seed(seed)


def train_first(
    policy: Policy,
    folder: LogFolder,
    events: int,
    weights: str,
    engine: Engine,
    progress: Progress | None = None,
) -> Policy:
    """The policy after the first events of a folder, in sums if the model has such, else in turn.

    It is the same on every engine, and `train`'s to 1e-9.
    """
    _check(policy, weights, 0.0, 0)
    where = engine if policy.model.additive else None
    run = _Run(policy.copy(), _Source(folder, None), weights, 0, progress, where)
    run.learn(0, events)
    return run.policy


class _Source:
    """A log in memory, or its folder."""

    def __init__(self, log: EventLog | LogFolder, features: FeatureBuilder | None) -> None:
        self.log, self.features = log, features

    @property
    def events(self) -> int:
        return len(self.log) if isinstance(self.log, EventLog) else self.log.contents.events

    def parts(self, start: int, stop: int) -> Iterator[EventLog]:
        if isinstance(self.log, EventLog):
            yield self._built(self.log[start:stop])
            return
        for part in self.log.parts(start, stop):
            yield self.part(part)

    def part(self, part: LogPart) -> EventLog:
        """The events of a part of the folder."""
        assert isinstance(self.log, LogFolder)
        return self._built(self.log.read(part))

    def _built(self, log: EventLog) -> EventLog:
        built = log if self.features is None else self.features.apply(log)
        check_range(built)
        return built


class _Facts(NamedTuple):
    """What is reported of the events of one part."""

    events: int
    capped: int
    total: float  # of the weights
    squares: float
    least: float  # payoff
    most: float
    recorded: bool  # propensities
    estimate: str | None  # how they were estimated

    @classmethod
    def of(cls, log: EventLog, weights: Floats | None, capped: int) -> _Facts:
        used = np.ones(len(log)) if weights is None else weights
        return cls(
            len(log),
            capped,
            float(used.sum()),
            float((used * used).sum()),
            float(log.payoff.min(initial=0.0)),
            float(log.payoff.max(initial=0.0)),
            log.recorded_propensity is not None,
            log.propensity_estimate,
        )


class _Run:
    """One call of `train`."""

    def __init__(
        self,
        policy: Policy,
        source: _Source,
        weights: str,
        seed: int,
        progress: Progress | None,
        engine: Engine | None,
    ) -> None:
        self.policy, self.source, self.weights, self.seed = policy, source, weights, seed
        self.engine = engine
        self.progress = progress
        self.learned, self.capped = 0, 0
        self.total = self.squares = self.seconds = 0.0  # of the weights
        self.least = self.most = 0.0  # of payoffs
        self.warned = False

    def learn(self, start: int, stop: int) -> None:
        """Learn these events."""
        # What a half-life makes of a trial depends on the last one of the part before it.
        timeless = self.policy.half_life is None
        if (
            isinstance(self.source.log, LogFolder)
            and timeless
            and self.engine
            and self.engine.apart
        ):
            self._learn_apart(self.source.log, self.engine, start, stop)
            return
        for part in self.source.parts(start, stop):
            weights, capped = _weights(part, self.weights)
            facts = _Facts.of(part, weights, capped)
            self._warn(facts)
            if not self.learned and self.engine is None:
                # One event compiles the kernels, or loads them: the time measured is the learning.
                learn_every(self.policy.copy(), part[:1], None if weights is None else weights[:1])
            began = perf_counter()
            learn_every(self.policy, part, weights, self.engine, self._follow)
            self.seconds += perf_counter() - began
            self._count(facts)

    def _learn_apart(self, folder: LogFolder, engine: Engine, start: int, stop: int) -> None:
        """Each worker reads and sums parts of its own; only sums come back."""
        began = perf_counter()
        shared = (self.source, self.policy, self.weights)
        for found in engine.map(_learn_part, folder.parts(start, stop), shared):
            self._warn(found.facts)
            absorb_apart(self.policy, found.kind, found.sums, found.facts.events)
            self._follow(found.facts.events)
            self._count(found.facts)
        self.seconds += perf_counter() - began

    def _count(self, facts: _Facts) -> None:
        self.capped += facts.capped
        self.total += facts.total
        self.squares += facts.squares
        self.least, self.most = min(self.least, facts.least), max(self.most, facts.most)

    def judge(self, start: int, stop: int) -> Result:
        """Replay the policy as it is on these events; it does not learn from them."""
        return replay(self.policy, EventLog.concat(self.source.parts(start, stop)), 0.0, self.seed)

    def _warn(self, facts: _Facts) -> None:
        if self.weights == PROPENSITY and not self.warned:
            self.warned = True
            warn_if_estimated(facts.estimate, stacklevel=5)
        uniform = not facts.recorded or self.weights == PROPENSITY
        if uniform or self.warned or isinstance(self.policy.model, LinearModel):
            return
        self.warned = True
        warnings.warn(
            f"{self.policy} averages payoffs over the users to whom an article was shown, and this "
            "log did not choose those uniformly; weight its events by propensity "
            "(--weights propensity, in Python weights='propensity')",
            NotUniformWarning,
            stacklevel=4,
        )

    def _follow(self, events: int) -> None:
        self.learned += events
        if self.progress is not None:
            self.progress("learning", self.learned, self.source.events)


class _Learned(NamedTuple):
    """What a worker found in its part of a folder."""

    kind: LogKind
    sums: ArticleSums
    facts: _Facts


def _learn_part(part: LogPart, shared: tuple[_Source, Policy, str]) -> _Learned:
    source, policy, how = shared
    log = source.part(part)
    weights, capped = _weights(log, how)
    sums = sums_apart(policy, log, weights)
    return _Learned(LogKind.of(log), sums, _Facts.of(log, weights, capped))


def _weights(log: EventLog, how: str) -> tuple[Floats | None, int]:
    """How often each event counts (None: once), and how many would count more."""
    if how == NONE or log.recorded_propensity is None:
        return None, 0
    sizes = log.pool_sizes[log.pool]
    weights = 1.0 / (sizes * log.recorded_propensity.astype(np.float64))
    return np.minimum(weights, MAX_WEIGHT), int((weights > MAX_WEIGHT).sum())
