"""Yahoo's R6B: sparse users, bare articles, and whatever else a file may hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.events.formats.reading import articles, events, read
from tests.events.formats.yahoo.yahoo_twin import read_r6b

from topstory.events import SparseContexts
from topstory.events.formats.faults import BadRow, Faults
from topstory.events.formats.pipeline import sources
from topstory.events.formats.yahoo import scan

LINE = "1317513291 id-565648 0 |user 1 11 13 16 15 14 |id-552077 |id-555224 |id-565648"


def agrees(text: bytes) -> Faults:
    """The reader gives what the twin gives."""
    batches, faults = read("r6b", text)
    twin = read_r6b(text)
    assert events(batches) == twin.events
    assert faults.bad == len(twin.bad)
    assert articles(batches) == twin.articles
    return faults


def test_a_line_of_the_readme() -> None:
    (log,), faults = read("r6b", f"{LINE}\n".encode())
    assert not faults.counts
    assert isinstance(log.users, SparseContexts)
    assert log.dimension == 136
    assert log.users.indices.tolist() == [9, 11, 12, 13, 14, 135]  # the constant is the last
    assert log[0].user[-1] == 1
    assert log[0].pool == ("id-552077", "id-555224", "id-565648")
    assert log[0].shown == "id-565648"
    assert log.features is None


@pytest.mark.parametrize("space", [" ", "  ", "   "])
def test_spaces_after_user_do_not_matter(space: str) -> None:
    assert not agrees(f"{LINE}\n{LINE.replace('|user ', '|user' + space)}\n".encode()).counts


def test_all_features_may_be_on() -> None:
    everything = " ".join(map(str, range(136, 0, -1)))
    text = LINE.replace("1 11 13 16 15 14", everything)
    (log,), faults = read("r6b", f"{text}\n{text}\n{text}\n".encode())
    assert not faults.counts
    assert log.users.indices.tolist() == 3 * list(range(136))


def test_many_features_end_a_batch_early() -> None:
    everything = " ".join(map(str, range(1, 137)))
    text = f"{LINE.replace('1 11 13 16 15 14', everything)}\n".encode() * 9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan.LineScanner.__init__, "__defaults__", (8,))
        batches, faults = read("r6b", text)
    assert sum(map(len, batches)) == 9
    assert not faults.counts


BAD = {
    "zero": LINE.replace(" 11 ", " 0 "),
    "137": LINE.replace(" 11 ", " 137 "),
    "twice": LINE.replace(" 11 ", " 13 "),
    "word": LINE.replace(" 11 ", " x "),
    "value": LINE.replace(" 11 ", " 11:1 "),
    "no constant": LINE.replace("|user 1 ", "|user "),
    "no features": LINE.replace(" 1 11 13 16 15 14", ""),
    "an article with features": LINE + " 1:1.0",
    "shown": LINE.replace("id-565648 0", "id-1 0"),
    "no articles": LINE.partition(" |id")[0],
    "article twice": LINE + " |id-552077",
}


@pytest.mark.parametrize("why", BAD)
def test_a_bad_row_is_skipped_and_counted_and_the_rest_read(why: str) -> None:
    text = f"{LINE}\n{BAD[why]}\n{LINE}\n".encode()
    faults = agrees(text)
    assert faults.bad == 1
    assert next(iter(faults.first.values())).line == 2
    with pytest.raises(BadRow, match=r"0\.txt:2: "):
        read("r6b", text, strict=True)


numbers = st.one_of(st.integers(1, 136), st.integers(0, 140)).map(str) | st.sampled_from(["x", "1"])
ids = st.sampled_from([f"id-{i}" for i in range(8)])


@st.composite
def line_texts(draw: st.DrawFn) -> str:
    once = draw(st.integers(0, 9)) > 0
    pool = draw(st.lists(ids, max_size=6, unique=once))
    listed = draw(st.integers(0, 9)) > 0 and len(pool) > 0
    shown = draw(st.sampled_from(pool) if listed else ids)
    unique = draw(st.integers(0, 9)) > 0
    user = draw(st.lists(numbers, max_size=12, unique_by=(lambda n: n) if unique else None))
    if draw(st.integers(0, 9)):
        user = ["1", *(n for n in user if n != "1")]
    spaces = draw(st.sampled_from([" ", "  "]))
    rest = " ".join(f"|{key}" for key in pool)
    return (
        f"1317513291 {shown} {draw(st.sampled_from('0012'))} |user{spaces}{' '.join(user)} {rest}"
    )


@st.composite
def files(draw: st.DrawFn) -> bytes:
    distinct = draw(st.lists(line_texts(), min_size=1, max_size=6))
    return "\n".join(draw(st.lists(st.sampled_from(distinct), max_size=30))).encode()


@given(text=files(), piece=st.integers(1, 300), size=st.integers(5, 9))
def test_reads_what_the_plain_parser_reads_however_it_is_cut(
    text: bytes, piece: int, size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "PIECE_BYTES", piece)
        patch.setattr(scan.LineScanner.__init__, "__defaults__", (size,))
        agrees(text)


@given(
    start=st.integers(0, 80), length=st.integers(0, 9), new=st.binary(max_size=6), tail=st.binary()
)
def test_any_bytes_give_an_answer(start: int, length: int, new: bytes, tail: bytes) -> None:
    text = bytearray(f"{LINE}\n{LINE}\n".encode())
    text[start : start + length] = new
    if text[:2] != b"\x1f\x8b":
        agrees(bytes(text) + tail)


def test_users_come_out_dense_as_they_went_in() -> None:
    random = np.random.default_rng(0)
    on = random.random((200, 136)) < 0.1
    on[:, 0] = True
    lines = (
        LINE.replace(
            "1 11 13 16 15 14", " ".join(map(str, random.permutation(row.nonzero()[0]) + 1))
        )
        for row in on
    )
    (log,), _ = read("r6b", "\n".join(lines).encode())
    dense = np.array([log.context(i) for i in range(len(log))])
    np.testing.assert_array_equal(dense, np.roll(on, -1, axis=1))
