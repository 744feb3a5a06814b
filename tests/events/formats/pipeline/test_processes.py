"""Other processes make an import faster, and nothing else about it different."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from tests.events.formats.vw.test_dsjson import line, multi

from topstory.events.formats import importing
from topstory.events.formats.faults import BadRow
from topstory.events.formats.importing import import_log, usual_workers
from topstory.events.formats.pipeline.lines import LineBlock
from topstory.events.formats.pipeline.processes import ParserProcesses
from topstory.events.formats.pipeline.sources import TRUNCATED

ROWS = 60


def dsjson(row: int) -> bytes:
    actions = [{"id": f"a{i % 7}", "x": 1 + (row == 40)} for i in range(row, row + 3)]
    changes: dict[str, Any] = {"c": multi(*actions), "_label_Action": row % 3 + 1}
    if row % 10 == 9:
        changes |= {"_label_probability": 7} if row % 20 == 9 else {"Timestamp": ...}
    if row == 13:
        changes["_skipLearn"] = True
    return msgspec.json.encode(line(**changes)) + b"\n"


def vw(row: int) -> bytes:
    label = "0:-1:0.5" if row % 10 != 9 else "0:-1"
    features = 1 + (row == 40)
    return f"shared |u n:{row}\n{label} a{row % 5}| x:{features}\nb| x:1\n\n".encode()


def jsonl(row: int) -> bytes:
    event = {"user": [row, 1], "pool": ["a", f"b{row % 5}"], "shown": "a", "payoff": row % 2}
    if row % 10 == 9:
        event["shown" if row % 20 == 9 else "user"] = [1]
    return msgspec.json.encode(event) + b"\n"


MAKERS = {"dsjson": dsjson, "vw": vw, "jsonl": jsonl}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few lines."""
    monkeypatch.setattr("topstory.events.formats.pipeline.sources.PIECE_BYTES", 1_000)
    monkeypatch.setattr("topstory.events.formats.pipeline.lines.BLOCK_BYTES", 1_000)


def files(folder: Path, format: str) -> list[Path]:
    """Bad first rows, good and bad ones, and a gzip file that breaks off."""
    rows = [MAKERS[format](row) for row in range(ROWS)]
    one, two, cut = (folder / name for name in ("one.txt", "two.txt", "cut.gz"))
    one.write_bytes(rows[9] + b"".join(rows))
    two.write_bytes(b"".join(rows[::-1]))
    squeezed = gzip.compress(b"".join(rows[:20]))
    cut.write_bytes(squeezed[: len(squeezed) - 12])
    return [one, cut, two]


def contents(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("format", MAKERS)
def test_the_log_and_the_report_are_the_same_to_the_byte(tmp_path: Path, format: str) -> None:
    given = files(tmp_path, format)
    reports, logs, read = [], [], []
    for workers in (1, 2):
        out, bytes_read = tmp_path / f"log{workers}", [0]

        def count(more: int, total: list[int] = bytes_read) -> None:
            total[0] += more

        report = import_log(format, given, out, max_bad=0.5, workers=workers, progress=count)
        reports.append(msgspec.structs.replace(report, seconds=0.0))
        logs.append(contents(out))
        read.append(bytes_read[0])
    assert reports[0] == reports[1]
    assert reports[0].skipped[TRUNCATED] == 1
    assert len(reports[0].skipped) > 1
    assert logs[0] == logs[1]
    assert read == [reports[0].bytes] * 2
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("format", MAKERS)
def test_strict_names_the_same_row(tmp_path: Path, format: str) -> None:
    given, out = files(tmp_path, format), tmp_path / "log"
    given[0].write_bytes(b"".join(MAKERS[format](row) for row in range(9)))
    printed = []
    for workers in (1, 2):
        with pytest.raises(BadRow) as caught:
            import_log(format, given, out, strict=True, workers=workers)
        printed.append(str(caught.value))
    assert printed[0] == printed[1]
    assert "cut.gz:" in printed[0]
    assert not out.exists()
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("small")
def test_an_interrupt_leaves_no_process_and_no_log(tmp_path: Path) -> None:
    given = files(tmp_path, "dsjson")
    calls = [0]

    def stop(_: int) -> None:
        calls[0] += 1
        if calls[0] == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_log("dsjson", given, tmp_path / "log", workers=2, progress=stop)
    assert multiprocessing.active_children() == []
    assert sorted(tmp_path.iterdir()) == sorted(given)


def test_an_error_in_a_process_is_the_imports_error(tmp_path: Path) -> None:
    good, endless = tmp_path / "good.txt", tmp_path / "endless.txt"
    good.write_bytes(vw(1))
    endless.write_bytes(b"\n\n" + b"0:-1:0.5 | a\n" * 70_000)
    with pytest.raises(ValueError, match=r"endless\.txt:3: more than 65536 lines without a blank"):
        import_log("vw", [good, endless], tmp_path / "log", workers=2)
    assert sorted(tmp_path.iterdir()) == [endless, good]


def test_a_process_that_dies_is_reported() -> None:
    block = (Path("day.txt"), LineBlock(1, b"x"))
    with (
        ParserProcesses(1, partial(os._exit, 3)) as crew,
        pytest.raises(OSError, match=r"day\.txt: .* ended"),
    ):
        list(crew.parse([block]))


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_process_outlives_an_import_that_is_ended(tmp_path: Path, how: signal.Signals) -> None:
    file = tmp_path / "day.jsonl"
    file.write_bytes(jsonl(1) * 1_200_000)  # seconds of work, so that it has not ended by itself
    call = "from topstory.cli import main; main()"
    arguments = ["import", "jsonl", str(file), str(tmp_path / "log"), "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, "-c", call, *arguments], stderr=subprocess.PIPE, start_new_session=True
    )
    until = time.monotonic() + 60
    children: list[psutil.Process] = []
    while len(children) < 3 and time.monotonic() < until:  # the third one counts semaphores
        children = psutil.Process(process.pid).children()
        time.sleep(0.01)
    if how is signal.SIGINT:  # Ctrl-C goes to all of them
        time.sleep(0.5)
        os.killpg(process.pid, how)
    else:
        process.send_signal(how)
    _, printed = process.communicate(timeout=60)
    assert len(children) == 3
    assert psutil.wait_procs(children, timeout=30)[1] == []
    if how is signal.SIGINT:
        assert (process.returncode, printed) == (130, b"interrupted\n")
        assert list(tmp_path.iterdir()) == [file]


def test_processes_are_started_where_they_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "process_count", lambda: 3)
    file = tmp_path / "day.txt"
    file.write_bytes(b"x" * 1_000)
    assert usual_workers("dsjson", [file]) == 1
    monkeypatch.setattr(importing, "MIN_PARALLEL_BYTES", 1_500)
    assert usual_workers("dsjson", [file, file]) == 3
    assert usual_workers("r6a", [file, file]) == usual_workers("csv", [file, file]) == 1
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        import_log("dsjson", file, tmp_path / "log", workers=0)
