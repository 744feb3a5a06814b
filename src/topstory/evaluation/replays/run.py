"""One replay of many: what to replay, and its outcome, small enough to send and to store."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from topstory.evaluation.blocks import Blocks
from topstory.evaluation.replays.delay import known_events
from topstory.evaluation.replays.replay import replay_unwarned
from topstory.evaluation.replays.truth import ExpectedPayoffs
from topstory.evaluation.replays.warm_start import needs_prior
from topstory.evaluation.result import ArticleResult, Bucket, Result
from topstory.evaluation.visitor_groups import VisitorSums
from topstory.events import EventLog
from topstory.kernels.compilation import Floats
from topstory.models.priors import Prior
from topstory.policies.entries import Setting
from topstory.policies.registry import REGISTRY, policy

Rows = tuple[tuple[float, ...], ...]

BUCKETS = ("deployment", "learning")
LOG = "log"
TOTAL = "total"  # of both, at a split of traffic


class Run(msgspec.Struct, frozen=True, order=True, omit_defaults=True, repr_omit_defaults=True):
    """A policy with its numbers, a data size and a seed; and how late payoffs come.

    >>> Run.of("ucb", {"alpha": 0.3}, size=0.05, seed=1)
    Run(policy='ucb', parameters=(('alpha', 0.3),), size=0.05, seed=1)
    """

    policy: str
    parameters: tuple[tuple[str, Setting], ...]
    size: float
    seed: int
    delay: float = 0.0  # minutes

    @classmethod
    def of(
        cls,
        policy: str,
        parameters: Mapping[str, Setting],
        size: float,
        seed: int,
        delay: float = 0.0,
    ) -> Run:
        """A run; the order of its parameters makes no difference."""
        return cls(policy, tuple(sorted(parameters.items())), size, seed, delay)

    @property
    def numbers(self) -> dict[str, float]:
        """Those of its parameters that are numbers: what tuning searches."""
        return {name: each for name, each in self.parameters if not isinstance(each, str)}


class Outcome(msgspec.Struct, frozen=True, eq=False, omit_defaults=True):
    """What a run found: a `Result` without the trained policy."""

    run: Run
    blocks: tuple[int, int, int | None]  # count, width and origin of the log's `Blocks`
    log: Rows  # (blocks, 4) sums of the log itself
    deployment_sums: Rows  # (blocks, 4)
    learning_sums: Rows  # (blocks, 4)
    binary: bool
    articles: dict[str, tuple[float, float, float, float, float, float]]  # of an `ArticleResult`
    events: int
    seconds: float
    truth: dict[str, float | None] | None = None  # true relative CTRs, if a simulator knows them
    # Of the log and both buckets: by group of visitors, and by bin of cells. None: none returned.
    visitors: dict[str, tuple[Rows, Rows]] | None = None

    @classmethod
    def of(cls, run: Run, result: Result) -> Outcome:
        """The numbers of a result."""
        bucket, known = result.deployment, result.true_relative_ctr
        return cls(
            run=run,
            blocks=(bucket.blocks.count, bucket.blocks.width, bucket.blocks.origin),
            log=_rows(bucket.log_sums),
            deployment_sums=_rows(bucket.sums),
            learning_sums=_rows(result.learning.sums),
            binary=bucket.binary,
            articles={
                article: (
                    *(float(a.shown), a.payoff, float(a.deployed), a.deployed_payoff),
                    *(float(a.base_shown), a.base_payoff),
                )
                for article, a in result.by_article.items()
            },
            events=result.events,
            seconds=result.seconds,
            truth=None if known is None else {name: _finite(known[name]) for name in BUCKETS},
            visitors=_visitor_rows(result),
        )

    def bucket(self, name: str) -> Bucket:
        """`deployment` or `learning`."""
        if name not in BUCKETS:
            raise ValueError(f"bucket must be 'deployment' or 'learning', got {name!r}")
        sums = self.deployment_sums if name == "deployment" else self.learning_sums
        return Bucket(
            *(_array(sums), _array(self.log), Blocks(*self.blocks), self.binary),
            self._visitors(name),
            self._visitors(LOG),
        )

    def _visitors(self, name: str) -> VisitorSums | None:
        return None if self.visitors is None else VisitorSums(*map(_array, self.visitors[name]))

    @property
    def by_article(self) -> dict[str, ArticleResult]:
        """As a `Result` has it."""
        return {
            article: ArticleResult(round(s), p, round(d), dp, round(b), bp)
            for article, (s, p, d, dp, b, bp) in self.articles.items()
        }


class SharedInputs(msgspec.Struct, frozen=True, eq=False):
    """What the runs of one log share: the log, and parameters that are not numbers."""

    log: EventLog
    given: Mapping[str, Any]  # such as a warm policy's offset
    expected: ExpectedPayoffs | None = None  # if a simulator knows them
    prior: Prior | None = None  # of the policies that need one


def play(run: Run, inputs: SharedInputs) -> Outcome:
    """Replay one run."""
    takes = REGISTRY[run.policy].model_parameters
    given = {name: value for name, value in inputs.given.items() if name in takes}
    if needs_prior(run.policy) and inputs.prior is not None:
        given["prior"] = inputs.prior
    made = policy(run.policy, seed=run.seed, **dict(run.parameters), **given)
    known = known_events(inputs.log, 60 * run.delay, 1)
    found = replay_unwarned(
        made, inputs.log, run.size, run.seed, expected=inputs.expected, known=known
    )
    return Outcome.of(run, found)


def _visitor_rows(result: Result) -> dict[str, tuple[Rows, Rows]] | None:
    of_log = result.learning.log_visitors
    sums = {LOG: of_log} | {name: getattr(result, name).visitors for name in BUCKETS}
    found = {
        name: (_rows(each.groups), _rows(each.cells))
        for name, each in sums.items()
        if each is not None
    }
    return found or None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _rows(sums: Floats) -> Rows:
    return tuple(tuple(row) for row in sums.tolist())


def _array(rows: Sequence[Sequence[float]]) -> Floats:
    return np.array(rows, np.float64).reshape(len(rows), 4)
