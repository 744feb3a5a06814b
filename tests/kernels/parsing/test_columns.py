"""Columns of text are read as Python reads each value, and hashed so that no two texts agree."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from examples.news_site.export import write_export
from hypothesis import given
from hypothesis import strategies as st

from topstory.events.formats.importing import import_log
from topstory.events.formats.mapped import fields
from topstory.events.formats.mapped.numbering import Numbering
from topstory.events.formats.tabular import arrow_columns
from topstory.events.formats.tabular.text_columns import plain_numbers, plain_times, text_hashes

ROOT = Path(__file__).parents[3]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NUMBER_LIKE = st.text("0123456789.-+ e", max_size=18) | st.floats(allow_nan=False).map(str)
TIME_LIKE = st.text("0123456789-: TZ.", max_size=27) | st.datetimes().map(str)


def micros(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


@given(st.lists(NUMBER_LIKE | st.integers(-(10**14), 10**14).map(lambda n: f"{n / 1000:.3f}")))
def test_a_number_is_what_python_makes_of_it(texts: list[str]) -> None:
    found = plain_numbers(pa.array(texts, pa.string()))
    assert found is not None
    for text, value, read in zip(texts, *found, strict=True):
        if read:
            assert np.float64(float(text)).tobytes() == value.tobytes()
        else:
            assert np.isnan(value)


def test_numbers_of_up_to_15_digits_are_read() -> None:
    found = plain_numbers(pa.array(["0.123456789012345", "-7", " 3.5", "12.", ".5"])[1:])
    assert found is not None
    assert found[0].tolist() == [-7, 3.5, 12, 0.5]


@given(st.lists(TIME_LIKE))
def test_a_time_is_what_python_makes_of_it(texts: list[str]) -> None:
    found = plain_times(pa.array(texts, pa.string()))
    assert found is not None
    for text, value, read in zip(texts, *found, strict=True):
        if read:
            assert micros(text.removesuffix("Z").replace("T", " ")) == value


@given(st.datetimes(), st.sampled_from([" ", "T"]), st.sampled_from(["", "Z"]))
def test_every_day_of_the_calendar_is_read(moment: datetime, between: str, zone: str) -> None:
    found = plain_times(pa.array([moment.isoformat(between) + zone]))
    assert found is not None
    assert found[1].all()
    assert found[0][0] == micros(moment.isoformat())


@pytest.mark.parametrize("text", ["2026-02-29 00:00:00", "2026-13-01 00:00:00", "2026-1-1 0:00:00"])
def test_a_day_that_does_not_exist_is_not_read(text: str) -> None:
    found = plain_times(pa.array([text.ljust(19, "0")]))
    assert found is not None
    assert not found[1].any()


def test_a_missing_value_is_not_read_whatever_bytes_are_in_its_place() -> None:
    hidden = pa.StringArray.from_buffers(
        2,
        pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes()),
        pa.py_buffer(b"12"),
        pa.py_buffer(b"\x02"),
    )
    assert hidden.to_pylist() == [None, "2"]
    found = plain_numbers(hidden)
    assert found is not None
    assert np.isnan(found[0][0])
    assert found[1].tolist() == [False, True]


@given(st.lists(st.lists(st.text(max_size=20) | st.none(), max_size=40), max_size=8))
def test_texts_are_numbered_as_a_dictionary_would(batches: list[list[str | None]]) -> None:
    known, twin = Numbering(), dict[str | None, int]()
    for batch in batches:
        before = len(twin)
        expected = [twin.setdefault(text, len(twin)) for text in batch]
        found = known(*text_hashes(pa.array(batch, pa.string()), (3, 4)))
        assert found.numbers.tolist() == expected
        assert found.fresh.tolist() == [expected.index(n) for n in range(before, len(twin))]


def test_a_table_of_keys_grows() -> None:
    known = Numbering()
    keys = np.arange(50_000, dtype=np.uint64) << np.uint64(20)  # their low bits agree
    for start in range(0, 50_000, 7_000):
        known(keys[start : start + 7_000], keys[start : start + 7_000])
    assert known(keys, keys).numbers.tolist() == list(range(50_000))


def test_the_quick_way_gives_the_log_of_the_slow_way_to_the_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export, _ = write_export(tmp_path, 3_000, bad=0.05)
    mapping = tmp_path / "mapping.toml"
    mapping.write_text((ROOT / "examples" / "news_site" / "mapping.toml").read_text())
    quick = import_log("csv", export, tmp_path / "quick", map=mapping, max_bad=1.0)
    monkeypatch.setattr(fields, "plain_numbers", lambda column: None)
    monkeypatch.setattr(arrow_columns, "plain_times", lambda column: None)
    slow = import_log("csv", export, tmp_path / "slow", map=mapping, max_bad=1.0)
    assert (quick.events, quick.skipped, quick.noted) == (slow.events, slow.skipped, slow.noted)
    files = [path for path in (tmp_path / "quick").rglob("*") if path.is_file()]
    assert len(files) > 4
    for path in files:
        other = tmp_path / "slow" / path.relative_to(tmp_path / "quick")
        assert path.read_bytes() == other.read_bytes(), path
