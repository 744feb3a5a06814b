"""Replay in Python, event by event, for a policy that kernels cannot run: plain Algorithm 3."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from topstory.evaluation.replays.prepared_log import CHUNK_EVENTS, PreparedLog
from topstory.events import EventLog
from topstory.kernels.buckets import DEPLOYMENT, LEARNING
from topstory.kernels.compilation import Counters, Slots
from topstory.kernels.scans.replay import ReplaySums, counts
from topstory.models.contexts import check_segments
from topstory.policies import Policy
from topstory.policies.half_life import ticks_of


def replay_in_python(
    policy: Any,
    log: EventLog,
    logged: PreparedLog,
    size: float,
    seed: int,
    progress: Callable[[int, int], object] | None,
    known: Counters,
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
        trained.use_contexts_of(log)
        check_segments(trained.model, log)
        trained.model.use_event_features(log.event_features)
    elif hasattr(trained, "use_event_features"):
        trained.use_event_features(log.event_features)
    greedy = getattr(trained, "greedy", None)
    if hasattr(trained, "add_article"):
        for article, features in log.articles.items():
            trained.add_article(article, features)
    half_life = trained.half_life if isinstance(trained, Policy) else None
    ticks = None if half_life is None else ticks_of(log, half_life)
    pools, shown = log.pools, log.shown_index
    sums = ReplaySums(np.zeros((2, logged.clusters, 4)), np.zeros((2, len(log.article_ids), 2)))
    log_seed = np.uint64(seed)
    blocks = np.zeros(0, np.int32)
    waiting: deque[tuple[int, tuple[Any, str, float]]] = deque()
    for t in range(len(log)):
        while waiting and waiting[0][0] < (known[t] if len(known) else t):
            trained.learn(*waiting.popleft()[1])
        if t % CHUNK_EVENTS == 0:
            blocks = logged.cluster_numbers(log, t, min(t + CHUNK_EVENTS, len(log)))
        if progress is not None and t % 1000 == 0:
            progress(t, len(log))
        if ticks is not None:
            trained.advance_to(int(ticks[t]))
        user, pool, s = log.contexts(t), pools[log.pool[t]], int(shown[t])
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
                waiting.append((t, (log.context(t), article, payoff)))
    if not len(known):
        for _, late in waiting:  # that of the last event
            trained.learn(*late)
    if progress is not None:
        progress(len(log), len(log))
    return trained, sums, np.arange(len(log.article_ids), dtype=np.int32)


def _named(choice: Any, pool: list[str], t: int) -> str:
    article = getattr(choice, "article", choice)
    if article not in pool:
        raise ValueError(f"event {t}: the policy chose {article!r}, which is not in the pool")
    return str(article)
