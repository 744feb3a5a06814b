"""Yahoo's R6A: every trait of the real files, and whatever else a file may hold."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.events.formats.reading import articles, events, read, rounded
from tests.events.formats.yahoo.yahoo_twin import read_r6a

from topstory.events import inspect
from topstory.events.formats.faults import CHANGED_FEATURES, BadRow, Faults
from topstory.events.formats.pipeline import sources
from topstory.events.formats.yahoo import scan
from topstory.events.formats.yahoo.pools import MISSING_FEATURES, NOT_LISTED

USER = "|user 2:0.000012 3:0.000000 4:0.000006 5:0.000023 6:0.999958 1:1.000000"
A = "|109498 2:0.306008 3:0.000450 4:0.077048 5:0.230439 6:0.386055 1:1.000000"
B = "|109509 2:0.306008 3:0.000450 4:0.077048 5:0.230439 6:0.386055 1:1.000000"
BARE = "|109528 1:1.000000"
LINE = f"1241160900 109498 0 {USER} {A} {B}"


def agrees(*texts: bytes) -> Faults:
    """The reader gives what the twin gives, file after file."""
    batches, faults = read("r6a", *texts)
    twins = [read_r6a(text) for text in texts]
    assert events(batches) == [event for twin in twins for event in rounded(twin)]
    assert faults.bad == sum(len(twin.bad) for twin in twins)
    if len(texts) == 1:
        assert articles(batches) == twins[0].articles
        assert faults.notes.get(MISSING_FEATURES, 0) == twins[0].lacking
    return faults


def test_a_line_of_the_readme() -> None:
    (log,), faults = read("r6a", f"{LINE}\n".encode())
    assert not faults.counts
    assert not faults.notes
    assert log.users.dtype == np.float32
    np.testing.assert_array_equal(
        log.users, np.array([[0.000012, 0, 0.000006, 0.000023, 0.999958, 1]], np.float32)
    )
    assert log.articles["109498"].tolist() == [0.306008, 0.00045, 0.077048, 0.230439, 0.386055, 1]
    assert log[0].pool == ("109498", "109509")
    assert log[0].shown == "109498"
    assert str(log.timestamps[0]) == "2009-05-01T06:55:00.000000"


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r"])
def test_the_last_line_needs_no_newline(end: str) -> None:
    assert not agrees(f"{LINE}\n{LINE}{end}".encode()).counts


def test_an_article_with_the_constant_only_keeps_its_events() -> None:
    text = f"{LINE}\n{LINE} {BARE}\n{LINE} {BARE}\n{LINE}\n".encode()
    (log,), faults = read("r6a", text)
    assert not faults.counts
    assert faults.notes == {MISSING_FEATURES: 2}
    assert faults.first[MISSING_FEATURES].line == 2
    assert log.articles["109528"].tolist() == [0, 0, 0, 0, 0, 1]
    assert log.pool_sizes[log.pool].tolist() == [2, 3, 3, 2]  # 1/K stays what it was


def test_features_that_change_later_are_noted_and_the_first_kept() -> None:
    changed = LINE.replace("2:0.306008", "2:0.5")
    (log,), faults = read("r6a", f"{LINE}\n{changed}\n{changed}\n".encode())
    assert faults.notes == {CHANGED_FEATURES: 2}
    assert log.articles["109498"][0] == 0.306008


def test_features_of_a_bad_row_are_not_taken() -> None:
    unlisted = LINE.replace("2:0.306008", "2:0.5").replace(" 109498 0", " 7 0")
    agrees(f"{unlisted}\n{LINE}\n".encode())


def test_a_shown_article_that_is_not_listed_is_a_bad_row() -> None:
    faults = agrees(f"{LINE}\n1241160900 7 0 {USER} {A} {B}\n{LINE}\n".encode())
    assert faults.counts == {NOT_LISTED: 1}
    assert faults.first[NOT_LISTED].line == 2


def test_an_article_of_a_change_over_that_is_never_shown_is_named_by_inspect() -> None:
    lines = [f"1241160900 {key} 0 {USER} {A} {B} {BARE}\n" for key in ("109498", "109509") * 100]
    (log,), _ = read("r6a", "".join(lines).encode())
    assert [each.article for each in inspect(log).uniformity.never_shown] == ["109528"]


BAD = {
    "number": LINE.replace("0.000012", "0.0000x2"),
    "nan": LINE.replace("0.000012", "nan"),
    "inf": LINE.replace("0.000012", "inf"),
    "underscore": LINE.replace("0.000012", "0.0_1"),
    "huge": LINE.replace("0.000012", "1e39"),
    "feature": LINE.replace("|user 2:", "|user 7:"),
    "feature twice": LINE.replace("|user 2:", "|user 3:"),
    "feature missing": LINE.replace("2:0.000012 ", "", 1),
    "constant": LINE.replace("1:1.000000", "1:0.000000", 1),
    "article number": LINE.replace("0.386055", "0.38.6055"),
    "article twice": f"{LINE} {A}",
    "article without id": f"{LINE} | ",
    "no articles": f"1241160900 109498 0 {USER}",
    "click": LINE.replace(" 0 |user", " 2 |user"),
    "time": LINE.replace("1241160900", "yesterday"),
    "late": LINE.replace("1241160900", "999999999999"),
    "user": LINE.replace("|user", "|visitor"),
    "empty": "",
    "short": "1241160900",
}


@pytest.mark.parametrize("why", BAD)
def test_a_bad_row_is_skipped_and_counted_and_the_rest_read(why: str) -> None:
    text = f"{LINE}\n{BAD[why]}\n{LINE}\n".encode()
    faults = agrees(text)
    assert faults.bad == 1
    assert next(iter(faults.first.values())).line == 2
    with pytest.raises(BadRow, match=r"0\.txt:2: "):
        read("r6a", text, strict=True)


ODD = {
    "spaces": LINE.replace(" ", "   "),
    "tabs": LINE.replace(" |", "\t|"),
    "another order": LINE.replace("|user 2:0.000012 3:0.000000", "|user 3:0.000000 2:0.000012"),
    "exponents": LINE.replace("0.000012", "1.2e-05"),
    "signs": LINE.replace("0.000012", "-0.000012").replace("0.000023", "+2.3"),
    "many digits": LINE.replace("0.000012", "0.12345678901234567890123"),
    "whole numbers": LINE.replace("0.000012", "12")
    .replace("0.000023", "5.")
    .replace("0.000006", ".5"),
    "a name": LINE.replace("109498", "größe"),
    "a carriage return": LINE + "\r",
}


@pytest.mark.parametrize("how", ODD)
def test_an_odd_but_clear_line_is_read(how: str) -> None:
    assert not agrees(f"{LINE}\n{ODD[how]}\n{LINE}\n{ODD[how]}\n".encode()).counts


def test_files_are_read_one_after_the_other_with_lines_counted_in_each() -> None:
    one, other = f"{LINE}\n{LINE}".encode(), f"{LINE}\nbroken\n".encode()
    faults = agrees(one, other)
    (first,) = faults.first.values()
    assert (Path(first.file).name, first.line) == ("1.txt", 2)


words = st.sampled_from(["0.000000", "1.000000", "0.306008", "-0.5", "7", "1e-3", "x", "", "0.1"])
ids = st.sampled_from(["109498", "109509", "109528", "1", "größe"])


@st.composite
def line_texts(draw: st.DrawFn) -> str:
    def features(few: bool) -> str:
        order = draw(st.permutations([2, 3, 4, 5, 6])) if draw(st.booleans()) else [2, 3, 4, 5, 6]
        given = [f"{i}:{draw(words)}" if few else f"{i}:0.{i * 111111}" for i in order]
        if draw(st.integers(0, 9)) == 0:
            given = given[:-1]
        return " ".join([*given, "1:1.000000"])

    unique = draw(st.integers(0, 9)) > 0
    pool = draw(st.lists(ids, max_size=4, unique=unique))
    listed = draw(st.integers(0, 9)) > 0 and len(pool) > 0
    shown = draw(st.sampled_from(pool) if listed else ids)
    strange = draw(st.integers(0, 4)) == 0
    rest = " ".join(
        f"|{key} 1:1.000000" if key == "109528" else f"|{key} {features(strange)}" for key in pool
    )
    time = draw(st.integers(1241160900, 1241160903)) * 300
    return f"{time} {shown} {draw(st.sampled_from('0012'))} |user {features(strange)} {rest}"


@st.composite
def files(draw: st.DrawFn) -> bytes:
    distinct = draw(st.lists(line_texts(), min_size=1, max_size=6))
    chosen = draw(st.lists(st.sampled_from(distinct), max_size=30))
    return draw(st.sampled_from(["\n", "\r\n"])).join(chosen).encode()


@given(text=files())
def test_reads_what_the_plain_parser_reads(text: bytes) -> None:
    agrees(text)


@given(text=files(), piece=st.integers(1, 700), size=st.integers(1, 7))
def test_where_pieces_and_batches_are_cut_changes_nothing(
    text: bytes, piece: int, size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "PIECE_BYTES", piece)
        patch.setattr(scan.LineScanner.__init__, "__defaults__", (size,))
        agrees(text)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    text = bytearray(f"{LINE}\n{LINE} {BARE}\n{LINE}\n".encode())
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        match draw(st.integers(0, 2)):
            case 0:
                text[at : at + draw(st.integers(1, 40))] = b""
            case 1:
                text[at:at] = draw(st.binary(min_size=1, max_size=8))
            case _:
                text[at : at + 1] = draw(st.sampled_from([b"|", b" ", b"\n", b":", b"\0", b"\r"]))
    return bytes(text)


@given(text=st.one_of(st.binary(max_size=300), mutated()))
@example(text=b"\x1f\x8b")
@example(text=b"|user |")
def test_any_bytes_give_an_answer(text: bytes) -> None:
    if text[:2] != b"\x1f\x8b":
        agrees(text)
    else:
        _, faults = read("r6a", text)
        assert faults.bad


def test_gzip_is_read_whatever_the_file_is_called() -> None:
    text = f"{LINE}\n".encode() * 5
    batches, faults = read("r6a", gzip.compress(text) + gzip.compress(text) + b"\0" * 9)
    assert sum(map(len, batches)) == 10
    assert not faults.counts


@given(share=st.floats(0, 1, exclude_max=True))
def test_truncated_gzip_keeps_what_was_read(share: float) -> None:
    text = "".join(f"{LINE.replace('0.000012', f'0.{i:06}')}\n" for i in range(500)).encode()
    whole = gzip.compress(text)
    batches, faults = read("r6a", whole[: 2 + int(share * (len(whole) - 2))], f"{LINE}\n".encode())
    found = events(batches)
    assert found[:-1] == rounded(read_r6a(text))[: len(found) - 1]
    assert faults.counts == {sources.TRUNCATED: 1}
    assert faults.first[sources.TRUNCATED].line == len(found)  # the line that was cut off


@given(at=st.integers(10, 200), value=st.integers(0, 255))
def test_damaged_gzip_is_a_fault(at: int, value: int) -> None:
    text = "".join(f"{LINE.replace('0.000012', f'0.{i:06}')}\n" for i in range(50)).encode()
    data = bytearray(gzip.compress(text))
    data[at] = value
    if data == gzip.compress(text):
        return
    try:
        _, faults = read("r6a", bytes(data))
    except sources.DamagedFile:
        return
    assert sources.TRUNCATED in faults.counts


def test_a_line_without_end_is_one_bad_row_and_takes_no_memory() -> None:
    text = f"{LINE}\n".encode() + b"x" * (3 * sources.PIECE_BYTES) + f"\n{LINE}\n".encode()
    batches, faults = read("r6a", text)
    assert sum(map(len, batches)) == 2
    assert faults.counts == {sources.TOO_LONG: 1}
