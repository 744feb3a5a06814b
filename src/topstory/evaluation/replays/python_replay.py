"""Replay in Python, event by event, for a policy that kernels cannot run: plain Algorithm 3."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from topstory.evaluation.replays.prepared_log import CHUNK_EVENTS, PreparedLog
from topstory.events import EventLog
from topstory.kernels.buckets import DEPLOYMENT, LEARNING
from topstory.kernels.compilation import Slots
from topstory.kernels.replay import ReplaySums, counts
from topstory.policies import Policy


def replay_in_python(
    policy: Any,
    log: EventLog,
    logged: PreparedLog,
    size: float,
    seed: int,
    progress: Callable[[int, int], object] | None,
) -> tuple[Any, ReplaySums, Slots]:
    """The trained copy, what it earned, and each article's row in that."""
    for method in ("choose", "learn"):
        if not callable(getattr(policy, method, None)):
            raise TypeError(
                "a policy has choose(user, pool) and learn(user, article, payoff); "
                f"{type(policy).__name__} has no {method}"
            )
    trained = deepcopy(policy)
    if isinstance(trained, Policy):
        trained.use_feature_model(log.feature_model, "the log")
    greedy = getattr(trained, "greedy", None)
    if hasattr(trained, "add_article"):
        for article, features in log.articles.items():
            trained.add_article(article, features)
    pools, shown = log.pools, log.shown_index
    sums = ReplaySums(np.zeros((2, logged.blocks.count, 4)), np.zeros((2, len(log.article_ids), 2)))
    log_seed = np.uint64(seed)
    blocks = np.zeros(0, np.int32)
    for t in range(len(log)):
        if t % CHUNK_EVENTS == 0:
            blocks = logged.blocks.numbers(log, t, min(t + CHUNK_EVENTS, len(log)))
        if progress is not None and t % 1000 == 0:
            progress(t, len(log))
        user, pool, s = log.context(t), pools[log.pool[t]], int(shown[t])
        article, payoff = log.article_ids[s], float(log.payoff[t])
        deployed = greedy is not None and _named(greedy(user, list(pool)), pool, t) == article
        chosen = _named(trained.choose(user, list(pool)), pool, t) == article
        if not (deployed or chosen):
            continue
        kept, teaches = counts(logged.traffic, t, len(pool), float(size), log_seed)
        if kept:
            for bucket, retained in ((DEPLOYMENT, deployed), (LEARNING, chosen)):
                if retained:
                    trial = (1.0, payoff, len(pool), len(pool) * payoff)
                    sums.blocks[bucket, blocks[t % CHUNK_EVENTS]] += trial
                    sums.articles[bucket, s] += trial[:2]
            if chosen and teaches:
                trained.learn(user, article, payoff)
    if progress is not None:
        progress(len(log), len(log))
    return trained, sums, np.arange(len(log.article_ids), dtype=np.int32)


def _named(choice: Any, pool: list[str], t: int) -> str:
    article = getattr(choice, "article", choice)
    if article not in pool:
        raise ValueError(f"event {t}: the policy chose {article!r}, which is not in the pool")
    return str(article)
