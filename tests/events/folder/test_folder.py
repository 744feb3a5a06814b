"""A log's folder: what is written is what is read."""

import json
import os
import tracemalloc
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from scipy import sparse
from tests.events.making import MAY_FIRST, columns, logs, same, uniform_log

from topstory.events import EventLog
from topstory.events.columns.times import Times
from topstory.events.folder import write

DAY = 86_400


def contents(folder: Path) -> Any:
    return json.loads((folder / "log.json").read_text())


def names(folder: Path) -> list[str]:
    return [file["name"] for file in contents(folder)["files"]]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=logs())
def test_a_round_trip_is_exact_to_the_bit_and_writes_the_same_bytes(
    log: EventLog, tmp_path: Path
) -> None:
    log.write(tmp_path / "one")
    again = EventLog.read(tmp_path / "one")
    assert same(again, log)
    again.write(tmp_path / "two")
    for folder, _, files in os.walk(tmp_path / "one"):
        twin = tmp_path / "two" / Path(folder).relative_to(tmp_path / "one")
        assert sorted(os.listdir(twin)) == sorted(os.listdir(folder))
        for name in files:
            assert (twin / name).read_bytes() == Path(folder, name).read_bytes()


def test_the_folder_is_laid_out_as_documented(tmp_path: Path) -> None:
    log = EventLog.from_arrays(
        **columns(
            timestamps=MAY_FIRST + np.array([0, 10, DAY]),
            articles={key: [0.5, 1.0] for key in "abcd"},
            propensity=[0.9, 0.5, 0.25],
        )
    )
    log.write(tmp_path / "log")
    found = sorted(str(p.relative_to(tmp_path / "log")) for p in (tmp_path / "log").rglob("*.*"))
    days = ["events/2009-05-01.parquet", "events/2009-05-02.parquet"]
    assert found == ["articles.parquet", *days, "log.json", "pools.parquet"]
    assert contents(tmp_path / "log") == {
        "format": "topstory-log",
        "version": 1,
        "events": 3,
        "articles": 4,
        "pools": 2,
        "dimension": 2,
        "contexts": "dense",
        "article_features": 2,
        "timed": True,
        "recorded_propensity": True,
        "files": [{"name": days[0], "events": 2}, {"name": days[1], "events": 1}],
    }
    events = pq.read_table(tmp_path / "log" / days[0])
    assert {field.name: str(field.type) for field in events.schema} == {
        "timestamp": "timestamp[us, tz=UTC]",
        "user": "fixed_size_list<element: float not null>[2]",
        "pool": "int32",
        "shown": "dictionary<values=string, indices=int32, ordered=0>",
        "payoff": "float",
        "propensity": "float",
    }
    metadata = pq.ParquetFile(tmp_path / "log" / days[0]).metadata
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    pools = pq.read_table(tmp_path / "log/pools.parquet").to_pylist()
    assert pools == [{"pool": 0, "articles": ["a", "b"]}, {"pool": 1, "articles": ["b", "c", "d"]}]
    articles = pq.read_table(tmp_path / "log/articles.parquet").to_pylist()
    assert articles == [{"article": key, "features": [0.5, 1.0]} for key in "abcd"]


def test_propensities_are_in_the_files_even_when_they_follow_from_the_pools(tmp_path: Path) -> None:
    EventLog.from_arrays(**columns()).write(tmp_path / "log")
    table = pq.read_table(tmp_path / "log/events/part-00000.parquet")
    assert table["propensity"].to_pylist() == pytest.approx([1 / 2, 1 / 2, 1 / 3])
    assert EventLog.read(tmp_path / "log").recorded_propensity is None


def test_days_that_alternate_keep_their_order(tmp_path: Path) -> None:
    log = uniform_log(6, [["a", "b"]], timestamps=MAY_FIRST + np.array([0, 1, 1, 0, 0, 2]) * DAY)
    log.write(tmp_path / "log")
    assert names(tmp_path / "log") == [
        "events/2009-05-01.parquet",
        "events/2009-05-02.parquet",
        "events/2009-05-01-1.parquet",
        "events/2009-05-03.parquet",
    ]
    assert same(EventLog.read(tmp_path / "log"), log)


def test_a_shuffled_log_is_cut_by_rows_not_into_thousands_of_files(tmp_path: Path) -> None:
    days = np.random.default_rng(0).integers(0, 10, 5000)
    log = uniform_log(5000, [["a", "b"]], timestamps=MAY_FIRST + days * DAY)
    log.write(tmp_path / "log")
    assert names(tmp_path / "log") == ["events/part-00000.parquet"]
    assert same(EventLog.read(tmp_path / "log"), log)


def test_long_runs_are_split_into_files_and_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "FILE_ROWS", 40)
    monkeypatch.setattr(write, "ROW_GROUP_ROWS", 16)
    timed = uniform_log(100, [["a", "b"], ["c"]], timestamps=MAY_FIRST + np.arange(100) * 1440)
    timed.write(tmp_path / "timed")  # 60 events a day
    assert names(tmp_path / "timed") == [
        "events/2009-05-01.parquet",
        "events/2009-05-01-1.parquet",
        "events/2009-05-02.parquet",
    ]
    assert pq.ParquetFile(tmp_path / "timed/events/2009-05-01.parquet").num_row_groups == 3
    assert same(EventLog.read(tmp_path / "timed"), timed)
    untimed = uniform_log(100, [["a", "b"], ["c"]])
    untimed.write(tmp_path / "untimed")
    assert names(tmp_path / "untimed") == [f"events/part-0000{part}.parquet" for part in range(3)]
    assert same(EventLog.read(tmp_path / "untimed"), untimed)


def test_a_row_group_names_only_the_articles_it_shows(tmp_path: Path) -> None:
    pool = [f"{i:05d}" for i in range(5000)]
    log = EventLog.from_arrays(np.ones((2, 1)), [pool], [0, 0], [pool[7], pool[9]], [0, 1])
    log.write(tmp_path / "log")
    column = pq.read_table(tmp_path / "log/events/part-00000.parquet")["shown"]
    # Ignored: the stubs do not know that the chunk is dictionary-encoded.
    assert column.chunk(0).dictionary.to_pylist() == ["00007", "00009"]  # type: ignore[attr-defined]


def test_slices_are_written_as_logs_of_their_own(tmp_path: Path) -> None:
    log = uniform_log(50, [["a", "b"], ["b", "c"]], timestamps=np.arange(50) * 7200)
    for part in (log[10:20], log[::3], log[:0]):
        part.write(tmp_path / "log")
        assert same(EventLog.read(tmp_path / "log"), part)


def test_a_log_may_be_written_over_itself_and_into_new_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = uniform_log(50, [["a", "b"]])
    log.write("deep/down/log")
    EventLog.read("deep/down/log")[:10].write("deep/down/log/")
    assert same(EventLog.read(Path("deep/down/log")), log[:10])
    assert os.listdir("deep/down") == ["log"]
    (tmp_path / "empty").mkdir()
    log.write("empty")
    assert same(EventLog.read("empty"), log)


def test_a_symbolic_link_to_a_log_stays_a_link(tmp_path: Path) -> None:
    log = uniform_log(50, [["a", "b"]])
    log.write(tmp_path / "may")
    (tmp_path / "current").symlink_to("may")
    log[:10].write(tmp_path / "current")
    assert (tmp_path / "current").is_symlink()
    assert same(EventLog.read(tmp_path / "may"), log[:10])


def test_a_log_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from topstory.events.folder import read, read_tables

    old, new = uniform_log(50, [["a", "b"]]), uniform_log(70, [["c", "d"]])
    old.write(tmp_path / "log")
    read_articles = read_tables.read_articles
    writes = iter([new.write])

    def swap_then_read(*args: Any) -> Any:
        for put in writes:
            put(tmp_path / "log")
        return read_articles(*args)

    monkeypatch.setattr(read, "read_articles", swap_then_read)
    assert same(EventLog.read(tmp_path / "log"), new)


def test_logs_of_version_1_stay_readable() -> None:
    """The folders were written when version 1 was new; they must never be written anew."""
    written = Path(__file__).parent / "written-by-version-1"
    dense = EventLog.from_arrays(
        **columns(
            timestamps=MAY_FIRST + np.array([0, 0.5, DAY]),
            articles={key: [place / 4, 1.0] for place, key in enumerate("abcd")},
            propensity=[0.75, 0.25, 0.5],
        )
    )
    assert same(EventLog.read(written / "dense"), dense)
    users = sparse.csr_array([[1, 0, 1], [0, 0, 0], [0, 1, 1]])
    assert same(EventLog.read(written / "sparse"), EventLog.from_arrays(**columns(users=users)))


def test_columns_and_keys_that_a_later_release_adds_are_ignored(tmp_path: Path) -> None:
    log = EventLog.from_arrays(**columns())
    log.write(tmp_path / "log")
    for path in (tmp_path / "log").rglob("*.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.append_column("mood", pa.array(["?"] * len(table))), path)
    path = tmp_path / "log/log.json"
    path.write_text(json.dumps(contents(tmp_path / "log") | {"weather": "fine"}))
    assert same(EventLog.read(tmp_path / "log"), log)


def test_reading_takes_little_more_memory_than_the_log(tmp_path: Path) -> None:
    events = 1_000_000
    part = uniform_log(events // 100, [[f"{i}" for i in range(20)]])
    log = EventLog.concat([part] * 100)
    timed = replace(log, times=Times(np.arange(events, dtype=np.uint32), 0, 1_000_000))
    timed.write(tmp_path / "log")
    # What numpy takes is traced; what Arrow takes is counted by a pool of our own.
    pool, usual = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        size = EventLog.read(tmp_path / "log").nbytes
        traced = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    assert size == pytest.approx(38 * events, rel=0.01)
    arrow = pool.max_memory()
    assert arrow is not None
    # Times pass through 8 bytes each; every thread decodes a few megabytes at once.
    threads = os.cpu_count() or 1
    assert 0 < arrow < threads * 30e6
    assert traced < size + 8 * events + 10e6 + threads * 10e6


def test_importing_the_room_imports_neither_numba_nor_arrow() -> None:
    import subprocess
    import sys

    script = "import sys, topstory.events; print({'numba', 'pyarrow', 'scipy'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_to_make_and_to_read_a_log_does_not_import_pandas(tmp_path: Path) -> None:
    import subprocess
    import sys

    assert find_spec("pandas") is not None  # else the test proves nothing
    given = columns(timestamps=MAY_FIRST + np.array([0, 10, DAY]))
    EventLog.from_arrays(**given).write(tmp_path / "log")
    script = (
        "import sys; from topstory.events import EventLog\n"
        "EventLog.read(sys.argv[1])\n"
        "EventLog.from_arrays([[1.0]] * 2, [['a', 'b']], [0, 0], ['a', 'b'], [0, 1])\n"
        "print('pyarrow' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "log"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False"]
