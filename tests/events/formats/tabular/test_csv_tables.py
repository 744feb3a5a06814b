"""Rows of CSV: Arrow's parser, where it is used, sees what Python's sees."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topstory.events.formats.pipeline.lines import LineBlock
from topstory.events.formats.tabular import csv_tables

NAMES = ["a", "b", "c"]
FIELD = st.sampled_from(
    ["1", "", '""', '"x"', '"x,y"', '"x ""y"""', 'x"y', '"x"y', '"', "é", '"é"']
)
ROW = st.lists(FIELD, min_size=2, max_size=4).map(",".join)
END = st.sampled_from(["\n", "\r\n"])


def columns(table: csv_tables.CsvTable) -> list[list[bytes]]:
    return [table.columns[name].to_pylist() for name in NAMES]


@given(rows=st.lists(ROW, min_size=1, max_size=6), end=END, last=st.booleans())
@example(rows=['"x,y","",1'] * 2, end="\n", last=False)
@example(rows=['1,"x', 'y",2'], end="\n", last=True)
def test_arrow_and_python_see_the_same_fields(rows: list[str], end: str, last: bool) -> None:
    block = LineBlock(7, (end.join(rows) + end * last).encode())
    quick = csv_tables._table(block, NAMES, lambda _: True)
    slow = csv_tables._by_python(block, NAMES, lambda _: True)
    assert columns(quick) == columns(slow)
    assert quick.lines.tolist() == slow.lines.tolist()
    assert [(each.line, each.reason) for each in sorted(quick.rejected)] == [
        (each.line, each.reason) for each in slow.rejected
    ]


def test_quoted_fields_do_not_need_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(csv_tables, "_by_python")
    block = LineBlock(2, b'"x,y","",1\r\n2,"z","w"\r\n')
    table = csv_tables._table(block, NAMES, lambda _: True)
    assert columns(table) == [[b"x,y", b"2"], [b"", b"z"], [b"1", b"w"]]
