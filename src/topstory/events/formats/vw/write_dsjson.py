"""Writing logs for Vowpal Wabbit: decision-service JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from topstory.events.columns.contexts import SparseContexts
from topstory.events.formats.event_parts import EventParts, Progress, event_parts
from topstory.events.log import EventLog
from topstory.files import replaced_file


def dsjson_lines(log: EventLog, progress: Progress = lambda _: None) -> Iterator[bytes]:
    """One line an event, for `vw --cb_explore_adf --dsjson`.

    `p` holds the recorded probability of the shown article; the rest of 1 is divided evenly among
    the others, since a log does not record theirs.

    >>> import numpy as np
    >>> log = EventLog.from_arrays(np.ones((1, 1)), [["a", "b"]], [0], ["b"], [1])
    >>> line = msgspec.json.decode(next(dsjson_lines(log)))
    >>> line["_label_cost"], line["_label_probability"], line["_label_Action"], line["p"]
    (-1.0, 0.5, 2, [0.5, 0.5])
    >>> line["c"]
    {'user': [1.0], '_multi': [{'id': 'a'}, {'id': 'b'}]}
    """
    encode = msgspec.json.Encoder().encode
    actions: dict[int, msgspec.Raw] = {}
    sizes = log.pool_sizes.tolist()
    dimension = log.dimension if isinstance(log.users, SparseContexts) else None
    for event in event_parts(log, progress):
        if event.pool not in actions:
            actions[event.pool] = msgspec.Raw(encode(_actions(log, event.pool)))
        line = _line(event, sizes[event.pool], actions[event.pool], dimension)
        yield encode(line) + b"\n"


def write_dsjson(log: EventLog, out: Path, progress: Progress) -> list[Path]:
    """All lines into a file."""
    with replaced_file(out) as file:
        file.writelines(dsjson_lines(log, progress))
    return [out]


def _line(
    event: EventParts, size: int, actions: msgspec.Raw, dimension: int | None
) -> dict[str, Any]:
    chosen = event.position + 1
    others = [i for i in range(1, size + 1) if i != chosen]
    rest = (1.0 - event.propensity) / max(1, len(others))
    user = event.user
    if dimension is not None:
        user = [0.0] * dimension
        for place in event.user:
            user[place] = 1.0
    return {
        "_label_cost": 0.0 - event.payoff,
        "_label_probability": event.propensity,
        "_label_Action": chosen,
        "_labelIndex": event.position,
        **({} if event.time is None else {"Timestamp": event.time}),
        "Version": "1",
        "EventId": str(event.number),
        "a": [chosen, *others],
        "c": {"user": user, "_multi": actions},
        "p": [event.propensity, *[rest] * len(others)],
        "VWState": {"m": "N/A"},
    }


def _actions(log: EventLog, pool: int) -> list[dict[str, Any]]:
    members = log.pool_members[log.pool_offsets[pool] : log.pool_offsets[pool + 1]].tolist()
    features = log.features
    if features is None:
        return [{"id": log.article_ids[i]} for i in members]
    return [{"id": log.article_ids[i], "article": features[i].tolist()} for i in members]
