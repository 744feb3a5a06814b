"""The checker of histories finds what is wrong, and lets pass what is not."""

from __future__ import annotations

from math import inf

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
