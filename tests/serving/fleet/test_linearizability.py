"""The checker of histories finds what is wrong, and lets pass what is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from math import inf

import numpy as np
import pytest
from tests.serving.fleet.linearizability import Operation, is_linearizable

PUT_A = Operation("put", "a", 0, 10)
PUT_B = Operation("put", "b", 20, 30)


@pytest.mark.parametrize(
    ("history", "right"),
    [
        ([PUT_A, Operation("get", None, 1, 2)], True),  # before the put
        ([PUT_A, Operation("get", "a", 1, 2)], True),  # after it
        ([PUT_A, Operation("get", None, 11, 12)], False),  # a stale read
        ([PUT_A, PUT_B, Operation("get", "a", 31, 32)], False),
        ([PUT_A, PUT_B, Operation("get", "a", 21, 22), Operation("get", "b", 23, 24)], True),
        # Once somebody has seen the new value, nobody sees the old one.
        ([PUT_A, PUT_B, Operation("get", "b", 21, 22), Operation("get", "a", 23, 24)], False),
        # A put without an answer may happen late, but then it stays.
        ([PUT_A._replace(returned=inf), Operation("get", "a", 50, 51)], True),
        (
            [
                PUT_A._replace(returned=inf),
                Operation("get", "a", 50, 51),
                Operation("get", None, 60, 61),
            ],
            False,
        ),
        ([PUT_A, Operation("put", None, 20, 30), Operation("seen", "", 31, 32)], False),
        ([PUT_A, Operation("put", None, 20, 30), Operation("seen", "", 25, 32)], True),
    ],
)
def test_a_history_is_right_or_not(history: list[Operation], right: bool) -> None:
    assert is_linearizable(history) is right


def test_many_operations_at_once_are_decided() -> None:
    puts = [Operation("put", str(number), 0, 100) for number in range(12)]
    gets = [Operation("get", str(number), number + 1, number + 1.5) for number in range(12)]
    assert is_linearizable(puts + gets)
    assert not is_linearizable([*puts, *gets, Operation("get", "0", 50, 51)])


def test_many_writes_without_an_answer_are_decided() -> None:
    """Each may have happened or not: 2**60 ways, of which few need a look."""
    lost = [Operation("put", None if n % 3 else f"v{n}", n) for n in range(60)]
    kept = [Operation("put", f"k{n}", 100 + 10 * n, 101 + 10 * n) for n in range(100)]
    seen = [Operation("seen", "", 103 + 10 * n, 104 + 10 * n) for n in range(100)]
    gone = [Operation("get", None, 105 + 10 * n, 106 + 10 * n) for n in range(40)]
    assert is_linearizable([*lost, *kept, *seen, *gone])
    assert not is_linearizable([*lost, *kept, *seen, *gone, Operation("get", "k0", 150, 151)])


def plainly(history: Sequence[Operation]) -> bool:
    """Whether any order of the answered and of some others explains all answers."""
    answered = [each for each in history if each.returned < inf]
    lost = [each for each in history if each.returned == inf and each.kind == "put"]
    for chosen in range(1 << len(lost)):
        picked = answered + [each for place, each in enumerate(lost) if chosen >> place & 1]
        if any(explained(order) for order in permutations(picked)):
            return True
    return False


def explained(order: Sequence[Operation]) -> bool:
    value = None
    for place, each in enumerate(order):
        if any(later.returned < each.called for later in order[place + 1 :]):
            return False
        if each.kind == "put":
            value = each.value
        elif value is None if each.kind == "seen" else value != each.value:
            return False
    return True


def test_the_search_finds_what_trying_all_orders_finds() -> None:
    random, found = np.random.default_rng(8), Counter[bool]()
    for _ in range(600):
        history = []
        for number in range(int(random.integers(2, 7))):
            called = int(random.integers(0, 8))
            returned = called + int(random.integers(0, 5)) + 0.5
            kind = ("put", "get", "seen")[int(random.integers(3))]
            values = [None, "a", f"v{number}"] if kind == "put" else [None, "a", "v0", "v1", "v2"]
            value = values[int(random.integers(len(values)))]
            if kind == "put" and random.random() < 0.4:
                returned = inf
            history.append(Operation(kind, value, called, returned))  # type: ignore[arg-type]
        right = is_linearizable(history)
        assert right == plainly(history), history
        found[right] += 1
    assert min(found.values()) > 100
