"""Whether a log fits into this machine's memory, before it is read."""

from __future__ import annotations

import os

from topstory.events.folder.contents import LogContents
from topstory.events.folder.location import Location

EVENT_BYTES = 18  # of pool, position, payoff, propensity and time; ids and visitors come on top
GIGABYTE = 1e9


def check_memory(place: Location, contents: LogContents) -> None:
    """MemoryError if the log surely does not fit: what is known of its size is a lower bound."""
    memory, needed = memory_bytes(), log_bytes(contents)
    if memory is not None and needed > memory:
        raise MemoryError(
            f"{place}: its {contents.events:,} events take {_gigabytes(needed)} of memory, and "
            f"this machine has {_gigabytes(memory)}. Replay, tuning and studies learn event by "
            "event, in order, so they need a log in one memory: use a larger machine, or a part of "
            "the log (`topstory split`). `topstory train`, `topstory features fit` and `topstory "
            "evaluate --engine …` read a log of any size in parts"
        )


def _gigabytes(size: int) -> str:
    """In words.

    >>> _gigabytes(2_400_000_000_000), _gigabytes(1_234_567)
    ('2,400 GB', '0.00123 GB')
    """
    number = size / GIGABYTE
    return f"{number:,.0f} GB" if number >= 10 else f"{number:.3g} GB"


def log_bytes(contents: LogContents) -> int:
    """What a log takes in memory, at least."""
    context = 0 if contents.contexts == "sparse" else contents.dimension
    return contents.events * (EVENT_BYTES + context * (12 if contents.exact else 4))


def memory_bytes() -> int | None:
    """Of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
