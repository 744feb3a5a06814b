"""Writing logs for the Open Bandit Pipeline: its `bandit_feedback` dictionary, also as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from topstory.events.columns.contexts import SparseContexts
from topstory.events.formats.event_parts import Progress
from topstory.events.log import EventLog
from topstory.files import replaced_file


def bandit_feedback(log: EventLog) -> dict[str, Any]:
    """The log as the Open Bandit Pipeline takes it; actions are numbered as `log.article_ids`.

    There is one slot, so every position is 0. Without article features each action has its own
    unit vector as `action_context`.

    >>> log = EventLog.from_arrays(np.ones((1, 1)), [["a", "b"]], [0], ["b"], [1])
    >>> feedback = bandit_feedback(log)
    >>> feedback["n_rounds"], feedback["n_actions"], feedback["action"], feedback["pscore"]
    (1, 2, array([1]), array([0.5]))
    """
    users = log.users
    if isinstance(users, SparseContexts):
        context = np.zeros(users.shape)
        context[np.repeat(np.arange(len(users)), np.diff(users.indptr)), users.indices] = 1.0
    else:
        context = users.astype(np.float64)
    features = log.features
    return {
        "n_rounds": len(log),
        "n_actions": len(log.article_ids),
        "action": log.shown_index.astype(np.int64),
        "position": np.zeros(len(log), np.int64),
        "reward": log.payoff.astype(np.float64),
        "pscore": log.propensity.astype(np.float64),
        "context": context,
        "action_context": np.eye(len(log.article_ids)) if features is None else features.copy(),
    }


def write_obp(log: EventLog, out: Path, progress: Progress) -> list[Path]:
    """The dictionary as .npz, which needs no pickle, with `article_ids` besides."""
    if out.suffix != ".npz":
        raise ValueError(f"{out}: a log for obp is a file of numpy's; end its name in .npz")
    feedback = bandit_feedback(log)
    with replaced_file(out) as file:
        np.savez(file, article_ids=np.array(log.article_ids, np.str_), **feedback)
    progress(len(log))
    return [out]
