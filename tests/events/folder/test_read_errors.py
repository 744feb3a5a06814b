"""A folder that is no log, or a damaged one, is refused in one sentence that names the file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from tests.events.making import columns

from topstory.events import EventLog

EVENTS = "events/1970-01-01.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = EventLog.from_arrays(
        **columns(
            timestamps=[1, 2, 3],
            articles={key: [0.5, 1.0] for key in "abcd"},
            propensity=[0.9, 0.5, 0.25],
        )
    )
    log.write(tmp_path / "log")
    return tmp_path / "log"


def change_contents(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "log.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def change_column(file: str, name: str, values: Any) -> Callable[[Path], None]:
    """Another column in its place; None: no such column."""

    def change(folder: Path) -> None:
        table = pq.read_table(folder / file)
        place = table.schema.get_field_index(name)
        table = table.remove_column(place)
        if values is not None:
            table = table.add_column(place, name, values)
        pq.write_table(table, folder / file)

    return change


def write_text(file: str, text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / file).write_text(text)

    return change


def flip_a_byte_of_data(folder: Path) -> None:
    path = folder / EVENTS
    data = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    data[column.data_page_offset + column.total_compressed_size - 1] ^= 0xFF
    path.write_bytes(data)


def users(values: list[list[float]]) -> Any:
    return pa.array(values, pa.list_(pa.float32(), 2))


def seconds(values: list[int | None]) -> Any:
    return pa.array(values, pa.timestamp("us", tz="UTC"))


def floats(values: list[float | None]) -> Any:
    return pa.array(values, pa.float32())


@pytest.mark.parametrize(
    ("damage", "kind", "message"),
    [
        (
            lambda f: (f / "log.json").unlink(),
            FileNotFoundError,
            r"log: not a topstory log \(it has no log.json\); `topstory import` makes one",
        ),
        (
            write_text("log.json", "{"),
            ValueError,
            r"log.json: not a topstory log's table of contents",
        ),
        (
            write_text("log.json", '{"format": "other", "version": 1}'),
            ValueError,
            r"log.json: format is 'other', not 'topstory-log'",
        ),
        (
            change_contents(version=4),
            ValueError,
            r"log.json: the log has format version 4, but this topstory reads up to version 3",
        ),
        (change_contents(events="many"), ValueError, r"log.json: damaged: Expected `int`"),
        (
            change_contents(events=4),
            ValueError,
            r"log.json: damaged: it counts 4 events, but its files 3",
        ),
        (change_contents(dimension=0), ValueError, r"log.json: damaged: it has a negative count"),
        (
            change_contents(files=[{"name": "../x.parquet", "events": 3}]),
            ValueError,
            r"'../x.parquet' cannot be a file of events",
        ),
        (
            change_contents(files=[{"name": EVENTS, "events": 4}], events=4),
            ValueError,
            r"1970-01-01.parquet: it has 3 rows, but log.json counts 4",
        ),
        (
            change_contents(pools=3),
            ValueError,
            r"pools.parquet: it has 2 rows, but log.json counts 3",
        ),
        (
            change_contents(dimension=3),
            ValueError,
            r"1970-01-01.parquet: column 'user' must be fixed_size_list<.*\[3\], but it is .*\[2\]",
        ),
        (
            change_contents(article_features=3),
            ValueError,
            r"articles.parquet: row 0: an article must have 3 features",
        ),
        (
            lambda f: (f / EVENTS).unlink(),
            FileNotFoundError,
            r"1970-01-01.parquet: the log's log.json lists this file, but it is missing",
        ),
        (lambda f: (f / "pools.parquet").unlink(), FileNotFoundError, r"pools.parquet: .* missing"),
        (
            write_text(EVENTS, "PAR1 or not"),
            ValueError,
            r"1970-01-01.parquet: damaged, or not a Parquet file",
        ),
        (write_text(EVENTS, ""), ValueError, r"1970-01-01.parquet: damaged, or not a Parquet file"),
        (
            flip_a_byte_of_data,
            ValueError,
            r"1970-01-01.parquet: damaged, or not a Parquet file .*CRC",
        ),
        (
            change_column(EVENTS, "payoff", None),
            ValueError,
            r"there is no column 'payoff'; it has timestamp, user, pool, shown, propensity",
        ),
        (
            change_column(EVENTS, "payoff", pa.array([1, 0, 0])),
            ValueError,
            r"column 'payoff' must be float, but it is int64",
        ),
        (
            change_column(EVENTS, "payoff", floats([1, None, 0])),
            ValueError,
            r"column 'payoff' has nulls",
        ),
        (
            change_column(EVENTS, "payoff", floats([1, np.nan, 0])),
            ValueError,
            r"1970-01-01.parquet: row 1: payoff nan; it must be finite",
        ),
        (
            change_column(EVENTS, "propensity", floats([1, 0.5, 0])),
            ValueError,
            r"row 2: propensity 0.0; it must lie in \(0, 1\]",
        ),
        (
            change_column(EVENTS, "pool", pa.array([0, 9, 0], pa.int32())),
            ValueError,
            r"row 1: pool 9; there are 2 pools",
        ),
        (
            change_column(EVENTS, "shown", pa.array(["b", "a", "z"])),
            ValueError,
            r"row 2: shown article z is not in articles.parquet",
        ),
        (
            change_column(EVENTS, "shown", pa.array(["b", "d", "d"])),
            ValueError,
            r"row 1: shown article d is not in its pool",
        ),
        (
            change_column(EVENTS, "user", users([[0, 1], [np.inf, 1], [0, 1]])),
            ValueError,
            r"row 1: user \[inf, 1.0\]; features must be finite",
        ),
        (
            change_column(EVENTS, "timestamp", seconds([1, None, 3])),
            ValueError,
            r"column 'timestamp' has nulls",
        ),
        (
            change_column(EVENTS, "timestamp", seconds([1, 2, 2**62])),
            ValueError,
            r"row 2: timestamp .*; years go from 1 to 9999",
        ),
        (
            change_column("pools.parquet", "pool", pa.array([1, 0], pa.int32())),
            ValueError,
            r"pools.parquet: column 'pool' must count from 0 to 1",
        ),
        (
            change_column("pools.parquet", "articles", pa.array([["a", "b"], ["b", "z"]])),
            ValueError,
            r"pools.parquet: pool 1 lists unknown article 'z'",
        ),
        (
            change_column("pools.parquet", "articles", pa.array([["a", "b"], ["b", "b"]])),
            ValueError,
            r"pools.parquet: pool 1 lists article 'b' twice",
        ),
        (
            change_column("pools.parquet", "articles", pa.array([["a", "b"], []])),
            ValueError,
            r"pools.parquet: pool 1 is empty",
        ),
        (
            change_column("articles.parquet", "article", pa.array(["a", "b", "a", "d"])),
            ValueError,
            r"articles.parquet: row 2: article 'a' is listed twice",
        ),
        (
            change_column("articles.parquet", "article", pa.array(["a", "", "c", "d"])),
            ValueError,
            r"articles.parquet: row 1: article id '' is empty",
        ),
        (
            change_column(
                "articles.parquet", "features", pa.array([[1.0, 2.0]] * 3 + [[1.0, np.nan]])
            ),
            ValueError,
            r"articles.parquet: row 3: features must be finite",
        ),
    ],
)
def test_damage_is_named(
    folder: Path, damage: Callable[[Path], None], kind: type[Exception], message: str
) -> None:
    damage(folder)
    with pytest.raises(kind, match=message) as caught:
        EventLog.read(folder)
    assert not isinstance(caught.value, pa.ArrowException)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(folder))


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere: there is no such folder"):
        EventLog.read(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match="file: it is a file, not the folder of a log"):
        EventLog.read(tmp_path / "file")


def test_damaged_sparse_contexts_are_named(tmp_path: Path) -> None:
    log = EventLog.from_arrays(**columns(users=sparse.csr_array(np.eye(3))))
    log.write(tmp_path / "log")
    file = "events/part-00000.parquet"
    for on, message in (
        (
            [[0], [2, 1], [2]],
            r"part-00000.parquet: row 1: user feature 1 must lie in 0..2 and come",
        ),
        ([[0], [1], [3]], r"part-00000.parquet: row 2: user feature 3 must lie in 0..2"),
    ):
        change_column(file, "user", pa.array(on, pa.list_(pa.int32())))(tmp_path / "log")
        with pytest.raises(ValueError, match=message):
            EventLog.read(tmp_path / "log")


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view()])
def test_any_type_of_text_will_do_for_ids(folder: Path, text: Any) -> None:
    change_column(EVENTS, "shown", pa.array(["b", "a", "d"], text))(folder)
    change_column("articles.parquet", "article", pa.array(["a", "b", "c", "d"], text))(folder)
    assert EventLog.read(folder).shown.tolist() == ["b", "a", "d"]
