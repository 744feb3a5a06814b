"""Whatever a file holds, a reader answers or says what is wrong: no other error, no hang."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.readers.reading import check
from tests.readers.test_dsjson import line
from tests.readers.test_obd import FIXTURE
from tests.readers.test_plain import EVENTS
from tests.readers.test_vw import EXAMPLES

from topstory.events.readers import Faults, reader


def _parquet() -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(EVENTS).to_parquet(buffer)
    return buffer.getvalue()


SEEDS: dict[str, bytes] = {
    "dsjson": msgspec.json.encode(line()) + b"\n" + msgspec.json.encode(line(pdrop=0.1)) + b"\n",
    "vw": EXAMPLES.encode(),
    "jsonl": b"\n".join(map(msgspec.json.encode, EVENTS)),
    "csv": b"timestamp,user_a,user_b,pool,shown,payoff,propensity\n"
    + b"2024-05-01T00:00:00Z,0.5,1,a|b,a,1,0.5\n" * 3
    + b'1714521600,0.5,1,"a|b",b,1,\n',
    "parquet": _parquet(),
    "obd": b"".join((FIXTURE / "men.csv").read_bytes().splitlines(keepends=True)[:6]),
}


def survives(format: str, data: bytes, **options: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events")
        path.write_bytes(data)
        faults = Faults()
        with contextlib.suppress(ValueError):
            for log in reader(format).read([path], faults, lambda _: None, **options):
                check(log)


def _options(format: str) -> dict[str, Any]:
    return {"item_context": FIXTURE / "item_context.csv"} if format == "obd" else {}


@pytest.mark.parametrize("format", SEEDS)
@given(data=st.binary(max_size=300))
@example(data=b"")
@example(data=b"\n")
@example(data=b"\x1f\x8b")
@example(data=b"\xef\xbb\xbf")
def test_random_bytes(format: str, data: bytes) -> None:
    survives(format, data, **_options(format))


MUTATIONS = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from("rid"), st.binary(max_size=4)),
    min_size=1,
    max_size=6,
)


def mutated(data: bytes, changes: list[tuple[float, str, bytes]]) -> bytes:
    """Bytes replaced, inserted or deleted, here and there."""
    for where, what, new in changes:
        at = int(where * (len(data) + 1))
        skip = {"r": len(new), "i": 0, "d": len(new) * 8 + 1}[what]
        data = data[:at] + (b"" if what == "d" else new) + data[at + skip :]
    return data


@pytest.mark.parametrize("format", SEEDS)
@settings(max_examples=200)
@given(changes=MUTATIONS)
def test_mutated_files(format: str, changes: list[tuple[float, str, bytes]]) -> None:
    survives(format, mutated(SEEDS[format], changes), **_options(format))


WORDS = st.sampled_from(
    ["nan", "inf", "-1", "1e999", "0", '""', "null", "[]", "{}", "true", "1e-300", "9" * 400]
)


@pytest.mark.parametrize("format", ["dsjson", "vw", "jsonl", "csv", "obd"])
@settings(max_examples=100)
@given(where=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), WORDS), min_size=1, max_size=3))
def test_odd_values_in_place_of_numbers(format: str, where: list[tuple[float, str]]) -> None:
    import re

    data = SEEDS[format]
    for share, word in where:
        found = list(re.finditer(rb"[\d.]+", data))
        if found:
            at = found[int(share * len(found))]
            data = data[: at.start()] + word.encode() + data[at.end() :]
    survives(format, data, **_options(format))


@settings(max_examples=100)
@given(data=st.data())
def test_dsjson_with_any_json_inside(data: st.DataObject) -> None:
    leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    values = st.recursive(
        leaves, lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=8
    )
    event = line()
    field = data.draw(st.sampled_from([*event, "c.FromUrl", "c._multi", "_skipLearn", "pdrop"]))
    value = data.draw(values)
    if field.startswith("c."):
        event["c"] = {**event["c"], field[2:]: value}
    else:
        event[field] = value
    with contextlib.suppress(UnicodeEncodeError, ValueError):
        survives("dsjson", msgspec.json.encode(event), features="hash")
        survives("dsjson", msgspec.json.encode(event), features="arrays")
