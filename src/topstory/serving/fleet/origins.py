"""Origins: where a front end put a record, as one number. A decision's id holds it.

Above every number that a journal gives, so that one service's decisions and a fleet's can be told
apart: a service may become a fleet while payoffs of its decisions still come.
"""

from __future__ import annotations

from topstory.serving.journal.postgres.fleet_tables import FIRST_ORIGIN, NODE_BITS, SEQ_BITS


def origin_of(node: int, seq: int) -> int:
    """The origin of a node's record.

    >>> origin_of(3, 7) - origin_of(3, 6), origin_of(3, 7) < 2**63
    (1, True)
    """
    return FIRST_ORIGIN | node << SEQ_BITS | seq


def place_of(origin: int) -> tuple[int, int]:
    """The node, and the number there.

    >>> place_of(origin_of(3, 7))
    (3, 7)
    """
    return origin >> SEQ_BITS & (1 << NODE_BITS) - 1, origin & (1 << SEQ_BITS) - 1


def is_origin(number: int) -> bool:
    """Whether this is an origin, not the number of a record in the journal."""
    return number >= FIRST_ORIGIN
