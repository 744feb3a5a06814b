"""Whatever a file holds, it is imported, or an error names the file: no other error, no hang."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.events.formats.obd.test_reader import FIXTURE
from tests.events.formats.plain.test_plain import EVENTS
from tests.events.formats.reading import check
from tests.events.formats.vw.test_dsjson import line
from tests.events.formats.vw.test_text import EXAMPLES

from topstory.events import EventLog
from topstory.events.formats.importing import import_log


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


@pytest.fixture(scope="module", autouse=True)
def hasty() -> Iterator[None]:
    """These logs need not survive a power cut, and waiting for the disk takes half of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def survives(format: str, data: bytes, **options: Any) -> None:
    """All good rows make a log that can be read again, or the error begins with a file's name."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "events"), Path(folder, "log")
        path.write_bytes(data)
        files = [path, *(value for value in options.values() if isinstance(value, Path))]
        refusal = ""
        try:
            report = import_log(format, path, out, max_bad=1.0, **options)
        except ValueError as error:
            refusal = str(error) or "no message"
        if refusal:
            assert refusal.startswith(tuple(f"{file}:" for file in files))
            assert not out.exists()
            return
        log = EventLog.read(out)
        check(log)
        assert report.events == len(log)
        assert report.rows == len(log) + sum([*report.skipped.values(), *report.left_out.values()])


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
@settings(max_examples=100)
@given(changes=MUTATIONS)
def test_mutated_files(format: str, changes: list[tuple[float, str, bytes]]) -> None:
    survives(format, mutated(SEEDS[format], changes), **_options(format))


ARTICLES = {
    "csv": b"article,length,constant\na,0.5,1\nb,0.25,1\n",
    "jsonl": b'{"article": "a", "features": [0.5, 1]}\n{"article": "b", "features": [0.25, 1]}\n',
    "obd": (FIXTURE / "item_context.csv").read_bytes(),
}


@pytest.mark.parametrize("format", ARTICLES)
@settings(max_examples=50)
@given(changes=MUTATIONS)
def test_mutated_files_of_articles(format: str, changes: list[tuple[float, str, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"articles.{format}")
        path.write_bytes(mutated(ARTICLES[format], changes))
        option = "item_context" if format == "obd" else "articles"
        survives(format, SEEDS[format], **{option: path})


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
    try:
        text = msgspec.json.encode(event)
    except (UnicodeEncodeError, ValueError, OverflowError):
        return
    survives("dsjson", text, features="hash")
    survives("dsjson", text, features="arrays")
