"""Is a history of edits linearizable? A search by hand, after Wing and Gong (1993).

Articles are independent: each is a register that holds a value, or nothing. A history is
linearizable if every operation can be given one moment between its call and its return, such that
the register, asked and changed at those moments, gives the answers that were given. What had no
answer (an error, a timeout) may have happened at any time after its call, or never.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Literal, NamedTuple

Value = str | None  # None: the article is not there


class Operation(NamedTuple):
    """An operation on one article: what was written, or what was answered."""

    kind: Literal["put", "get", "seen"]  # seen: by a decision, whatever its value was
    value: Value
    called: float
    returned: float = inf  # never answered


def is_linearizable(history: Sequence[Operation], initial: Value = None) -> bool:
    """Whether the operations have an order that explains all answers.

    >>> put, get = Operation("put", "a", 0, 1), Operation("get", None, 2, 3)
    >>> is_linearizable([put, get]), is_linearizable([put, get._replace(value="a")])
    (False, True)
    >>> is_linearizable([put._replace(returned=inf), get])  # it may never have happened
    True
    """
    operations = sorted(
        (each for each in history if each.returned < inf or each.kind == "put"),
        key=lambda each: each.called,
    )
    answered = sum(1 << place for place, each in enumerate(operations) if each.returned < inf)
    seen: set[tuple[int, Value]] = set()
    stack: list[tuple[int, Value]] = [(0, initial)]
    while stack:
        done, value = stack.pop()
        if done & answered == answered:
            return True
        if (done, value) in seen:
            continue
        seen.add((done, value))
        left = [place for place in range(len(operations)) if not done >> place & 1]
        first_return = min(operations[place].returned for place in left)
        for place in left:
            each = operations[place]
            if each.called > first_return:
                break  # another one had returned before this was called
            if each.kind == "put":
                stack.append((done | 1 << place, each.value))
            elif (each.kind == "get" and each.value == value) or (
                each.kind == "seen" and value is not None
            ):
                stack.append((done | 1 << place, value))
    return False
