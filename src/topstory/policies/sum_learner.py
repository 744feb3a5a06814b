"""Learning from every event of a log: by sums over its parts, on any engine, or event by event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from topstory.engines import Engine
from topstory.engines import engine as named_engine
from topstory.events import EventLog
from topstory.kernels.compilation import Floats
from topstory.models.hybrid.model import HybridLinear
from topstory.models.model import Model
from topstory.models.priors.sums import ArticleSums
from topstory.policies.additivity import absorb
from topstory.policies.half_life import faded, ticks_of
from topstory.policies.log_learner import learn_log
from topstory.policies.policy import Policy

PART_EVENTS = 1 << 17  # the same on every engine, so that the sums are the same to the bit
# Of d·m. A trial of a hybrid model moves a matrix of so many squared: with 800, events one by one
# take minutes where their sums take seconds.
MAX_SHARED_BY_EVENT = 100


def learn_every(
    policy: Policy,
    log: EventLog,
    weights: Floats | None = None,
    engine: Engine | None = None,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Let a policy learn a log: by sums on the engine, if one is given, or event by event.

    A hybrid model with a wide shared part learns by sums in any case.
    """
    if engine is None and _is_wide(policy.model, log):
        engine = named_engine("serial")
    if engine is None:
        learn_log(policy, log, weights, progress)
    else:
        learn_sums(policy, log, weights, engine, progress)


def _is_wide(model: Model, log: EventLog) -> bool:
    if not (isinstance(model, HybridLinear) and model.additive):
        return False
    count = 1 if log.features is None else log.features.shape[1]
    own, event = log.dimension - log.event_features, log.event_features
    return own * (count + event) > MAX_SHARED_BY_EVENT


def learn_sums(
    policy: Policy,
    log: EventLog,
    weights: Floats | None,
    engine: Engine,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Let a policy learn a log as a sum over its parts: to 1e-9 what `learn_log` teaches.

    Args:
        policy: learns.
        log: what happened; its numbers are in the range that models take.
        weights: (n,) how often each event counts; None: once.
        engine: where parts of the log are summed.
        progress: called with the number of events that were summed, now and then.
    """
    policy.use_contexts_of(log)
    model = policy.model
    model.add_all(log.articles)
    model.see(log.dimension, log.event_features)
    if policy.half_life is not None and len(log):
        ticks = ticks_of(log, policy.half_life)
        policy.advance_to(int(ticks[-1]))
        assert policy.tick is not None
        weights = faded(policy.tick - ticks) * (1.0 if weights is None else weights)
    parts = [(at, min(at + PART_EVENTS, len(log))) for at in range(0, len(log), PART_EVENTS)]
    whole: ArticleSums | None = None
    for (start, stop), sums in zip(
        parts, engine.map(_sum_part, parts, (model, log, weights)), strict=True
    ):
        whole = sums if whole is None else whole.plus(sums)
        if progress is not None:
            progress(stop - start)
    if whole is not None:
        absorb(model, whole)
    policy.trials += len(log)


class LogKind(NamedTuple):
    """What a policy must know of a log beside its events."""

    articles: dict[str, Any]
    dimension: int
    event_features: int
    feature_model: str | None

    @classmethod
    def of(cls, log: EventLog) -> LogKind:
        """The kind of a log."""
        return cls(dict(log.articles), log.dimension, log.event_features, log.feature_model)


def sums_apart(policy: Policy, log: EventLog, weights: Floats | None) -> ArticleSums:
    """What `learn_sums` would have the policy absorb of a log: to the bit, also elsewhere."""
    model = policy.copy().model
    model.add_all(log.articles)
    model.see(log.dimension, log.event_features)
    whole: ArticleSums | None = None
    for start in range(0, max(1, len(log)), PART_EVENTS):
        sums = _sum_part((start, min(start + PART_EVENTS, len(log))), (model, log, weights))
        whole = sums if whole is None else whole.plus(sums)
    assert whole is not None
    return whole


def absorb_apart(policy: Policy, kind: LogKind, sums: ArticleSums, events: int) -> None:
    """Learn what `sums_apart` found in so many events of a log of that kind."""
    policy.use_feature_model(kind.feature_model, "the log")
    policy.model.add_all(kind.articles)
    policy.model.see(kind.dimension, kind.event_features)
    absorb(policy.model, sums)
    policy.trials += events


def _sum_part(part: tuple[int, int], shared: tuple[Model, EventLog, Floats | None]) -> ArticleSums:
    (start, stop), (model, log, weights) = part, shared
    return model.sums_of(log[start:stop], None if weights is None else weights[start:stop])
