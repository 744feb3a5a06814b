"""Many runs over one log, on any engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from topstory.engines import Engine
from topstory.evaluation.replays.prepared_log import prepared
from topstory.evaluation.replays.retention import warn_if_unlikely
from topstory.evaluation.replays.run import BUCKETS, Outcome, Run, SharedInputs, play
from topstory.evaluation.replays.truth import ExpectedPayoffs
from topstory.events import EventLog
from topstory.models.priors import Prior
from topstory.policies import REGISTRY


def play_all(
    runs: Sequence[Run],
    log: EventLog,
    engine: Engine,
    given: Mapping[str, Any] | None = None,
    called: str = "log",
    expected: ExpectedPayoffs | None = None,
    prior: Prior | None = None,
) -> Iterator[Outcome]:
    """The outcomes as they finish; they do not depend on the engine.

    Args:
        runs: what to replay. The longest start first, so that no core idles at the end.
        log: the log to replay.
        engine: where to run.
        given: parameters of models that are not numbers, such as `offset`.
        called: the log's name in warnings and errors.
        expected: what each event pays on average, if a simulator knows it.
        prior: of the policies that need one, and of no other.

    Warns:
        NotUniformWarning: once, if the log's articles were not shown uniformly at random.
        RetentionWarning: for every run that retained far more or fewer events than 1 in K.
    """
    if not runs:
        return
    if not len(log):
        raise ValueError(f"the {called} has no events to replay")
    logged = prepared(log, runs[0].seed)
    logged.warn(log, called)
    ordered = sorted(runs, key=lambda run: -cost(run))
    inputs = SharedInputs(log, dict(given or {}), expected, prior)
    for _, outcome in engine.finished(play, ordered, inputs):
        buckets = {name: outcome.bucket(name) for name in BUCKETS}
        warn_if_unlikely(outcome.run.policy, buckets, logged.uniformity)
        yield outcome


def cost(run: Run) -> float:
    """How long a run takes, compared with one of a simple policy over the same log.

    >>> cost(Run.of("linucb-hybrid", {}, 1.0, 0)), cost(Run.of("ucb", {}, 1.0, 0))
    (3.0, 1.0)
    """
    return REGISTRY[run.policy].model.cost
