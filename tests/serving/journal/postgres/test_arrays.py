"""A column is the array that the driver makes of a list, value by value."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from topstory.serving.journal.postgres.arrays import (
    BigIntColumn,
    BytesColumn,
    Column,
    DoubleColumn,
    IntegerColumn,
    TextColumn,
)
from topstory.serving.journal.postgres.connection import Connection, connect

LEAST, MOST = -(2**63), 2**63 - 1


@pytest.fixture(scope="module")
def connection(server: str) -> Iterator[Connection]:
    with closing(connect(server, 10, 10)) as made:
        yield made


@pytest.mark.parametrize(
    ("column", "kind", "values"),
    [
        (BigIntColumn, "bigint", [0, 1, -1, LEAST, MOST]),
        (BigIntColumn, "bigint", [LEAST, None, MOST, None]),
        (IntegerColumn, "integer", [0, -(2**31), 2**31 - 1]),
        (IntegerColumn, "integer", [None, 7]),
        (DoubleColumn, "double precision", [0.0, -0.0, 0.1, 1e308, 5e-324, float("inf")]),
        (DoubleColumn, "double precision", [None, 0.1]),
        (
            TextColumn,
            "text",
            ["", "a,b", 'quo"te', "{}", "NULL", "back\\slash", "Zürich 東京", "n\nl"],
        ),
        (TextColumn, "text", [None, "", None]),
        (BytesColumn, "bytea", [b"", b"\0\xff\\", bytes(70_000)]),
        (BytesColumn, "bytea", [None, b"", b"x"]),
        *((each, kind, []) for each, kind in ((BigIntColumn, "bigint"), (TextColumn, "text"))),
        (BigIntColumn, "bigint", [None]),
    ],
)
def test_a_column_is_the_array_of_a_list(
    connection: Connection, column: type[Column], kind: str, values: list[Any]
) -> None:
    query = f"SELECT a::text, a, cardinality(a) FROM (SELECT %s::{kind}[] AS a) AS made".encode()
    (ours,) = connection.execute(query, (column(values),)).fetchall()
    (plain,) = connection.execute(query, (values,)).fetchall()
    assert ours == plain
    assert ours[1] == values


def test_a_number_that_does_not_fit_is_refused(connection: Connection) -> None:
    for column, number in ((BigIntColumn, MOST + 1), (IntegerColumn, 2**31)):
        for values in ([number], [number, None]):
            with pytest.raises((OverflowError, struct.error)):
                connection.execute("SELECT %s", (column(values),))
    assert connection.execute("SELECT 1").fetchall() == [(1,)]  # nothing was sent
