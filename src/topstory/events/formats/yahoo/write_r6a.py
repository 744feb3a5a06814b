"""Writing logs as Yahoo's text, version 1 of the Today Module's data (R6A)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from topstory.events.columns.contexts import SparseContexts
from topstory.events.columns.times import SECOND
from topstory.events.formats.event_parts import BLOCK_EVENTS, Progress
from topstory.events.log import EventLog
from topstory.files import replaced_file


def write_r6a(log: EventLog, out: Path, progress: Progress) -> list[Path]:
    """The whole log into one file; gzipped if its name ends in .gz."""
    return write_r6a_parts([log], out, progress)


def write_r6a_parts(parts: Iterable[EventLog], out: Path, progress: Progress) -> list[Path]:
    """Logs one after the other into one file."""
    with ExitStack() as stack:
        file: Any = stack.enter_context(replaced_file(out))
        if out.suffix == ".gz":
            from isal import igzip

            # No timestamp in the header, so that the same log gives the same bytes.
            compressed: Any = igzip.IGzipFile
            file = stack.enter_context(compressed("", "wb", 1, file, mtime=0))
        for part in parts:
            file.writelines(r6a_lines(part, progress))
    return [out]


def r6a_lines(log: EventLog, progress: Progress = lambda _: None) -> Iterator[bytes]:
    """One line an event: time, shown, click, the user's features, and the pool with its articles'.

    The constant, last in a context, is feature 1 and the others are 2 onwards, to six decimals.

    >>> articles = {"7": [0.5, 1], "8": [0, 1]}
    >>> log = EventLog.from_arrays([[0.25, 1]], [["7", "8"]], [0], ["8"], [1], articles, [9])
    >>> print(next(r6a_lines(log)).decode().rstrip())
    9 8 1 |user 2:0.250000 1:1.000000 |7 2:0.500000 1:1.000000 |8 2:0.000000 1:1.000000
    """
    users, features = log.users, log.features
    if log.times is None:
        raise ValueError("r6a needs times, and this log has none")
    if isinstance(users, SparseContexts) or features is None:
        raise ValueError("r6a needs dense contexts and article features, and this log lacks them")
    if log.recorded_propensity is not None:
        raise ValueError("r6a cannot store propensities: it is for uniformly random logs")
    for key in log.article_ids:
        if not key.isprintable() or " " in key or "|" in key:
            raise ValueError(f"article id {key!r} cannot be written as r6a: it has a space or a |")
    layout = _layout(log.dimension)
    described = [
        f"|{key} {_text(row)}" for key, row in zip(log.article_ids, features.tolist(), strict=True)
    ]
    tails: dict[int, tuple[list[str], bytes]] = {}
    for start in range(0, len(log), BLOCK_EVENTS):
        part = log[start : start + BLOCK_EVENTS]
        assert part.times is not None
        rows = zip(
            (part.times.microseconds() // SECOND).tolist(),
            part.pool.tolist(),
            part.position.tolist(),
            part.payoff.tolist(),
            part.users.tolist(),  # type: ignore[union-attr]  # dense, as checked above
            strict=True,
        )
        for time, pool, position, payoff, user in rows:
            if pool not in tails:
                members = log.pool_members[log.pool_offsets[pool] : log.pool_offsets[pool + 1]]
                pooled = members.tolist()
                text = " " + " ".join(described[i] for i in pooled) + "\n"
                tails[pool] = [log.article_ids[i] for i in pooled], text.encode()
            ids, tail = tails[pool]
            yield f"{time} {ids[position]} {payoff:g} |user {layout % (*user,)}".encode() + tail
        progress(len(part))


def _layout(dimension: int) -> str:
    """`2:%f 3:%f … 1:%f`."""
    return " ".join(f"{number}:%.6f" for number in (*range(2, dimension + 1), 1))


def _text(values: list[float]) -> str:
    return _layout(len(values)) % tuple(values)
