"""Columns as PostgreSQL's binary arrays: a batch of thousands of rows takes the driver no time.

As lists, every value would be written as text, quoted, and read again by the server: this costs
more than all the rest of a learner's work. Every parameter of a column is one of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from struct import Struct
from typing import Any, ClassVar

import numpy as np
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

_header = Struct(">iiIii").pack  # dimensions, whether there are nulls, type, length, first index
_length = Struct(">i").pack
_NULL = _length(-1)


class Column:
    """Values of one type, None among them or not."""

    oid: ClassVar[int]  # of the array's type
    element: ClassVar[int]  # the type of one
    kind: ClassVar[str | None] = None  # of a number, as struct has it; None: text or bytes

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    def body(self) -> bytes:
        """As the server reads it."""
        values, count = self.values, len(self.values)
        if not count:
            return _header(0, 0, self.element, 0, 0)[:12]
        holes = None in values
        head = _header(1, holes, self.element, count, 1)
        if self.kind is None:
            return head + b"".join(_texts(values))
        if not holes:
            items = np.empty(count, [("length", ">i4"), ("value", f">{self.kind}")])
            items["length"], items["value"] = items.dtype["value"].itemsize, values
            return head + items.tobytes()
        one = Struct(f">i{self.kind}")
        pack, size = one.pack, one.size - 4
        return head + b"".join([_NULL if each is None else pack(size, each) for each in values])


def _texts(values: Iterable[str | bytes | None]) -> Iterable[bytes]:
    encoded = [each.encode() if isinstance(each, str) else each for each in values]
    lengths = [_NULL if each is None else _length(len(each)) for each in encoded]
    return chain.from_iterable(zip(lengths, (each or b"" for each in encoded), strict=True))


class BigIntColumn(Column):
    """`bigint[]`."""

    oid, element, kind = 1016, 20, "q"


class IntegerColumn(Column):
    """`integer[]`."""

    oid, element, kind = 1007, 23, "i"


class DoubleColumn(Column):
    """`double precision[]`."""

    oid, element, kind = 1022, 701, "d"


class TextColumn(Column):
    """`text[]`, of a database in UTF-8."""

    oid, element = 1009, 25


class BytesColumn(Column):
    """`bytea[]`."""

    oid, element = 1001, 17


def dumper_of(column: type[Column]) -> type[Dumper]:
    """What gives such a column to the driver."""

    class ColumnDumper(Dumper):
        format = Format.BINARY
        oid = column.oid

        def dump(self, obj: Column) -> Buffer:
            return obj.body()

    return ColumnDumper


DUMPERS = [
    (each, dumper_of(each))
    for each in (BigIntColumn, IntegerColumn, DoubleColumn, TextColumn, BytesColumn)
]
