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
    answered = sorted((each for each in history if each.returned < inf), key=_called)
    lost = sorted((e for e in history if e.returned == inf and e.kind == "put"), key=_called)
    read = {each.value for each in answered if each.kind == "get"}
    seen: set[tuple[int, int, Value]] = set()
    stack: list[tuple[int, int, Value]] = [(0, 0, initial)]  # what is done, of which lost, and then
    while stack:
        state = stack.pop()
        if state in seen:
            continue
        seen.add(state)
        done, used, value = state
        place = (~done & (done + 1)).bit_length() - 1  # the first that is not done
        if place == len(answered):
            return True
        first_return, may_be_next = inf, []
        while place < len(answered) and answered[place].called <= first_return:
            if not done >> place & 1:
                first_return = min(first_return, answered[place].returned)
                may_be_next.append(place)
            place += 1
        for place in may_be_next:
            each, then = answered[place], done | 1 << place
            if answered[place].called > first_return:
                break  # another one had returned before this was called
            if each.kind == "put":
                stack.append((then, used, each.value))
            elif _explains(value, each):
                stack.append((then, used, value))
            else:
                for other in _useful(lost, used, each, read, first_return):
                    stack.append((then, used | 1 << other, lost[other].value))
    return False


def _called(each: Operation) -> float:
    return each.called


def _explains(value: Value, each: Operation) -> bool:
    return value == each.value if each.kind == "get" else value is not None


def _useful(
    lost: Sequence[Operation], used: int, wanting: Operation, read: set[Value], until: float
) -> list[int]:
    """Which writes without an answer to try right before a read that the present value denies.

    Nowhere else does one matter: what another write follows at once might as well never have
    happened. Of those whose value nobody can tell apart, the first called will do.
    """
    found, alike = [], set[Value | bool]()
    for place, each in enumerate(lost):
        if each.called > until:
            break
        if used >> place & 1 or not _explains(each.value, wanting):
            continue
        what = each.value if each.value is None or each.value in read else True
        if what not in alike:
            alike.add(what)
            found.append(place)
    return found
