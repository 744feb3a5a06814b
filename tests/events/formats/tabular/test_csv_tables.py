"""Rows of CSV: Arrow's parser, where it is used, sees what Python's sees."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from topstory.events.formats.pipeline.lines import LineBlock
from topstory.events.formats.tabular import csv_tables

NAMES = ["a", "b", "c"]
HEAD = csv_tables.CsvHeader(NAMES)
FIELD = st.sampled_from(
    ["1", "", '""', '"x"', '"x,y"', '"x ""y"""', 'x"y', '"x"y', '"', "é", '"é"', "\udcff", "a\rb"]
)
ROW = st.lists(FIELD, min_size=2, max_size=4).map(",".join) | st.just("")
END = st.sampled_from(["\n", "\r\n"])
DELIMITER = st.sampled_from(csv_tables.DELIMITERS)


def columns(table: csv_tables.CsvTable) -> list[list[bytes]]:
    return [table.columns[name].to_pylist() for name in NAMES]


@given(rows=st.lists(ROW, min_size=1, max_size=6), end=END, last=st.booleans(), delimiter=DELIMITER)
@example(rows=['"x,y","",1'] * 2, end="\n", last=False, delimiter=",")
@example(rows=['1,"x', 'y",2'], end="\n", last=True, delimiter=";")
def test_arrow_and_python_see_the_same_fields(
    rows: list[str], end: str, last: bool, delimiter: str
) -> None:
    text = (end.join(rows) + end * last).replace(",", delimiter)
    block = LineBlock(7, text.encode("utf-8", "surrogateescape"))
    head = csv_tables.CsvHeader(NAMES, delimiter)
    quick = csv_tables._table(block, head, lambda _: True)
    slow = csv_tables._by_python(block, head, lambda _: True)
    assert columns(quick) == columns(slow)
    assert quick.lines.tolist() == slow.lines.tolist()
    assert [(each.line, each.reason) for each in sorted(quick.rejected)] == [
        (each.line, each.reason) for each in slow.rejected
    ]


@example(rows=["1,2,3", "", "\udcff,2,3", "1,2"], end="\n", last=True, delimiter=";")
@given(rows=st.lists(ROW, min_size=1, max_size=6), end=END, last=st.booleans(), delimiter=DELIMITER)
def test_lines_split_between_the_two_are_the_same(
    rows: list[str], end: str, last: bool, delimiter: str
) -> None:
    text = (end.join(rows) + end * last).replace(",", delimiter)
    block = LineBlock(7, text.encode("utf-8", "surrogateescape"))
    head = csv_tables.CsvHeader(NAMES, delimiter)
    both = csv_tables._by_both(block, head, lambda _: True)
    slow = csv_tables._by_python(block, head, lambda _: True)
    if both is None:  # no ordinary line
        return
    assert columns(both) == columns(slow)
    assert both.lines.tolist() == slow.lines.tolist()
    assert [(each.line, each.reason) for each in sorted(both.rejected)] == [
        (each.line, each.reason) for each in slow.rejected
    ]


def test_an_odd_line_leaves_the_others_to_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    slowly = csv_tables._by_python

    def counted(*args: Any) -> csv_tables.CsvTable:
        parsed.append(len(args[3]))
        return slowly(*args)

    monkeypatch.setattr(csv_tables, "_by_python", counted)
    block = LineBlock(2, b"1,2,3\n" * 500 + b"caf\xe9,2,3\n" + b"1,2,3\n" * 500)
    table = csv_tables._table(block, HEAD, lambda _: True)
    assert parsed == [1]
    assert len(table.lines) == 1001
    assert table.columns["a"][500].as_py() == b"caf\xe9"


def test_the_block_is_split_into_lines_once_however_many_rows_are_bad(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    split: list[int] = []
    lines = LineBlock.lines

    def counted(block: LineBlock) -> list[bytes]:
        split.append(1)
        return lines(block)

    monkeypatch.setattr(LineBlock, "lines", counted)
    table = csv_tables._table(LineBlock(2, b"1,x,3\n" * 1000), HEAD, lambda _: True)
    assert {table.text(row) for row in range(1000)} == {b"1,x,3"}
    assert len(split) == 1


def test_quoted_fields_do_not_need_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(csv_tables, "_by_python")
    block = LineBlock(2, b'"x,y","",1\r\n2,"z","w"\r\n')
    table = csv_tables._table(block, HEAD, lambda _: True)
    assert columns(table) == [[b"x,y", b"2"], [b"", b"z"], [b"1", b"w"]]
