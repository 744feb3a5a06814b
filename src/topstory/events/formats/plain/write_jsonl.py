"""Writing logs in the plain layout as JSON lines: events in one file, articles in another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from topstory.events.columns.contexts import SparseContexts
from topstory.events.formats.event_parts import Progress, event_parts
from topstory.events.log import EventLog
from topstory.files import replaced_file


def jsonl_lines(log: EventLog, progress: Progress = lambda _: None) -> Iterator[bytes]:
    """One line per event; importing them gives the same log to the bit.

    >>> import numpy as np
    >>> log = EventLog.from_arrays(np.ones((1, 1)), [["a", "b"]], [0], ["b"], [1])
    >>> print(next(jsonl_lines(log)).decode().rstrip())
    {"user":[1.0],"pool":["a","b"],"shown":"b","payoff":1.0}
    """
    encode = msgspec.json.Encoder().encode
    pools: dict[int, tuple[list[str], msgspec.Raw]] = {}
    recorded = log.recorded_propensity is not None
    dimension = log.dimension if isinstance(log.users, SparseContexts) else None
    for event in event_parts(log, progress):
        if event.pool not in pools:
            bounds = log.pool_offsets[event.pool], log.pool_offsets[event.pool + 1]
            ids = [log.article_ids[i] for i in log.pool_members[slice(*bounds)].tolist()]
            pools[event.pool] = ids, msgspec.Raw(encode(ids))
        ids, pool = pools[event.pool]
        user = event.user
        line: dict[str, Any] = {} if event.time is None else {"timestamp": event.time}
        line["user"] = user if dimension is None else {"on": user, "dimension": dimension}
        line |= {"pool": pool, "shown": ids[event.position], "payoff": event.payoff}
        if recorded:
            line["propensity"] = event.propensity
        yield encode(line) + b"\n"


def article_lines(log: EventLog) -> Iterator[bytes]:
    """One line an article, in the log's order."""
    for key, features in log.articles.items():
        line: dict[str, Any] = {"article": key}
        if features is not None:
            line["features"] = features.tolist()
        yield msgspec.json.encode(line) + b"\n"


def articles_beside(out: Path) -> Path:
    """The path of the articles file.

    >>> articles_beside(Path("week.jsonl")).name
    'week.articles.jsonl'
    """
    return out.with_name(f"{out.name.removesuffix('.jsonl')}.articles.jsonl")


def write_jsonl(log: EventLog, out: Path, progress: Progress) -> list[Path]:
    """Events into `out`, articles into the file beside it."""
    beside = articles_beside(out)
    # Neither file is replaced before both are written: old events need their old articles.
    with replaced_file(beside) as articles, replaced_file(out) as events:
        articles.writelines(article_lines(log))
        events.writelines(jsonl_lines(log, progress))
    return [out, beside]
