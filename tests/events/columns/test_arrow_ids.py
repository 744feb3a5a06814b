"""Arrow arrays made and read without pandas: the same as Arrow's own functions give."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topstory.events.columns import arrow_ids
from topstory.events.columns.arrow_ids import as_numpy, string_array


@given(st.lists(st.text()))
def test_strings_equal_arrow_s_own(values: list[str]) -> None:
    made = string_array(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))


@pytest.mark.parametrize("value", [None, 1, b"a", ["a"]])
def test_what_is_no_string_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        string_array(["a", value])


def test_more_bytes_than_offsets_can_count_are_left_to_arrow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrow_ids, "MAX_STRING_BYTES", 3)
    assert string_array(["ab", "cd"]).equals(pa.array(["ab", "cd"]))


@pytest.mark.parametrize(
    "kind", [pa.int32(), pa.uint16(), pa.int64(), pa.float32(), pa.float64(), pa.bool_()], ids=str
)
@pytest.mark.parametrize("values", [[], [1, 0, 3], [1, None, 3]])
def test_numbers_equal_arrow_s_own(kind: pa.DataType, values: list[int | None]) -> None:
    wanted = [None if v is None else bool(v) for v in values] if kind == pa.bool_() else values
    array = pa.array(wanted, kind)
    for part in (array, array.slice(1)):
        found, own = as_numpy(part), part.to_numpy(zero_copy_only=False)
        assert found.dtype == own.dtype
        np.testing.assert_array_equal(found, own)


def test_where_nulls_are_not_allowed_they_are_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        as_numpy(pa.array([1, None]), zero_copy_only=True)
