"""An import: streamed, whole or not at all, and honest about what it skipped."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks import ROOT
from benchmarks.yahoo import write_r6a
from tests.events.making import same_events

from topstory.events import EventLog
from topstory.events.formats.faults import BLANK_PROPENSITY, MAX_SHOWN_CHARACTERS, BadRow, Faults
from topstory.events.formats.importing import import_log
from topstory.events.formats.pipeline.sources import DAMAGED, TRUNCATED, DamagedFile, pieces
from topstory.events.formats.pipeline.validation import ParsedRows, RejectedRow
from topstory.events.formats.registry import reader

LINE = "1317513291 id-2 1 |user 1 11 13 |id-1 |id-2\n"


def test_an_import_is_the_batches_one_after_the_other(tmp_path: Path) -> None:
    files = [tmp_path / f"day{i}.txt" for i in range(3)]
    for seed, file in enumerate(files):
        write_r6a(file, 5_000, seed)
    squeezed = tmp_path / "day1.gz"
    squeezed.write_bytes(gzip.compress(files[1].read_bytes()))
    files[1] = squeezed
    read: list[int] = []
    report = import_log("r6a", files, tmp_path / "log", progress=read.append)
    batches = [log for _, log in reader("r6a").read(files, Faults(), lambda more: None)]
    log = EventLog.read(tmp_path / "log")
    assert report.events == report.rows == len(log) == 15_000
    assert report.bytes == sum(read) == sum(file.stat().st_size for file in files)
    assert report.skipped == {}
    assert np.array_equal(np.asarray(log.users), np.concatenate([b.users for b in batches]))
    assert log.shown.tolist() == [key for batch in batches for key in batch.shown]


def test_a_users_id_is_no_feature_in_json_lines_either(tmp_path: Path) -> None:
    file, out = tmp_path / "events.jsonl", tmp_path / "log"
    fields = '"pool": ["a", "b"], "shown": "a", "payoff": 1'
    file.write_text(f'{{"user_id": 7, "user_age": 0.5, {fields}}}\n')
    with pytest.raises(ValueError, match=r"user_id would become a feature: drop it or rename it"):
        import_log("jsonl", file, out)
    file.write_text(f'{{"user_id": 7, "user": [0.5], {fields}}}\n')
    import_log("jsonl", file, out)
    assert EventLog.read(out).dimension == 1


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_users_id_is_no_feature(format: str, tmp_path: Path) -> None:
    file = tmp_path / f"events.{format}"
    table = pd.DataFrame({"user_id": [7], "user_age": [0.5], "shown": ["a"], "payoff": [1]})
    table["pool"] = ["a|b"] if format == "csv" else [["a", "b"]]

    def write() -> None:
        table.to_csv(file, index=False) if format == "csv" else table.to_parquet(file)

    write()
    with pytest.raises(ValueError, match=r"events\..*: the column 'user_id' would .*rename it"):
        import_log(format, file, tmp_path / "log")
    table["user"] = ["0.5"] if format == "csv" else [[0.5]]
    write()
    import_log(format, file, tmp_path / "log")
    assert EventLog.read(tmp_path / "log").dimension == 1


def test_rows_left_out_are_rows_but_not_bad() -> None:
    faults = Faults(strict=True)
    faults.left_out("not wanted", "day.txt", 3, "x" * 200)
    faults.left_out("not wanted", "day.txt", 9, count=4)
    assert faults.omissions == {"not wanted": 5}
    assert (faults.bad, faults.omitted, faults.first["not wanted"].line) == (0, 5, 3)


def test_too_many_bad_rows_leave_nothing(tmp_path: Path) -> None:
    file, out = tmp_path / "day.txt", tmp_path / "room" / "log"
    file.write_text(LINE * 98 + "broken\n" * 2)
    with pytest.raises(ValueError, match=r"2 of 100 rows are bad \(2\.0%.*day\.txt:99: 'broken'"):
        import_log("r6b", file, out)
    assert list(out.parent.iterdir()) == []
    report = import_log("r6b", file, out, max_bad=0.02)
    assert (report.events, report.rows, sum(report.skipped.values())) == (98, 100, 2)


def test_strict_names_the_first_bad_row_and_leaves_the_old_log(tmp_path: Path) -> None:
    file, out = tmp_path / "day.txt", tmp_path / "log"
    file.write_text(LINE)
    import_log("r6b", file, out)
    file.write_text(LINE * 3 + "broken\n" + LINE)
    with pytest.raises(BadRow, match=r"day\.txt:4: "):
        import_log("r6b", file, out, strict=True)
    assert len(EventLog.read(out)) == 1


@pytest.mark.parametrize("format", ["r6a", "r6b", "jsonl", "dsjson", "vw", "csv"])
def test_another_format_is_given_up_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.setattr("topstory.events.formats.importing.MAX_EXCESS_BAD_ROWS", 1_000)
    monkeypatch.setattr("topstory.events.formats.pipeline.lines.BLOCK_BYTES", 1 << 20)
    file = tmp_path / "day.txt"
    header = b"user,pool,shown,payoff\n" if format == "csv" else b""
    file.write_bytes(header + (b"x" * 1_000 + b"\n\n") * 8_000)  # vw: a blank line an example
    read: list[int] = []
    with pytest.raises(ValueError, match=f"see that it is {format}"):
        import_log(format, file, tmp_path / "log", progress=read.append)
    assert sum(read) < file.stat().st_size / 2


@pytest.mark.parametrize("format", ["jsonl", "dsjson", "vw"])
def test_bad_rows_are_reported_batch_by_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    row = b"x" * 1_000 + b"\n\n"
    monkeypatch.setattr("topstory.events.formats.pipeline.sources.PIECE_BYTES", 10 * len(row))
    monkeypatch.setattr("topstory.events.formats.pipeline.lines.BLOCK_BYTES", 10 * len(row))
    reported: list[list[RejectedRow]] = []

    def sift(rows: ParsedRows, faults: Faults) -> None:
        reported.append(rows.rejected)

    monkeypatch.setattr("topstory.events.formats.pipeline.line_parser.validate", sift)
    file = tmp_path / "day.txt"
    file.write_bytes(row * 25)
    list(reader(format).read([file], Faults(), lambda _: None))
    assert [len(refused) for refused in reported] == [10, 10, 5]
    assert {len(refusal.text) for refused in reported for refusal in refused} == {
        MAX_SHOWN_CHARACTERS + 1
    }


def test_a_truncated_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    plain, cut = tmp_path / "day.txt", tmp_path / "day.gz"
    write_r6a(plain, 2_000)
    whole = gzip.compress(plain.read_bytes())
    cut.write_bytes(whole[: len(whole) // 2])
    report = import_log("r6a", [cut, plain], tmp_path / "log")
    assert 2_000 < report.events < 4_000
    assert report.skipped == {TRUNCATED: 1}


class TestDamagedGzip:
    """Nothing that a failing checksum covers is imported, and the loss is counted in bytes."""

    def part(self, folder: Path, seed: int, events: int = 300) -> bytes:
        write_r6a(folder / "part.txt", events, seed)
        return (folder / "part.txt").read_bytes()

    def test_no_untrue_row_is_ever_imported(self, tmp_path: Path) -> None:
        """Single bits that flip, anywhere: the import fails, or every event is true."""
        random, text = np.random.default_rng(0), self.part(tmp_path, 0)
        file, whole = tmp_path / "day.gz", gzip.compress(text)
        file.write_bytes(whole)
        import_log("r6a", file, tmp_path / "log")
        true, failed = EventLog.read(tmp_path / "log"), 0
        for at in random.integers(10, len(whole), 100).tolist():
            flipped = bytearray(whole)
            flipped[at] ^= 1 << int(random.integers(8))
            file.write_bytes(flipped)
            try:
                import_log("r6a", file, tmp_path / "flipped")
            except ValueError:
                failed += 1
                continue
            log = EventLog.read(tmp_path / "flipped")
            assert same_events(log, true[: len(log)])
        assert failed >= 95  # a few look truncated, and are read as far as they go

    def test_a_hidden_end_is_damage_not_a_file_that_is_cut_off(self, tmp_path: Path) -> None:
        """All flips of the last block's bytes that hide its end, and its checksum with it."""
        text, file = self.part(tmp_path, 0, 60), tmp_path / "day.gz"
        whole, hidden = gzip.compress(text), 0
        for bit in range(8 * (len(whole) - 300), 8 * (len(whole) - 8)):
            flipped = bytearray(whole)
            flipped[bit // 8] ^= 1 << bit % 8
            try:
                seems_cut = not zlib.decompressobj(31).decompress(flipped).startswith(text)
            except zlib.error:
                continue
            if seems_cut:
                hidden += 1
                file.write_bytes(flipped)
                with pytest.raises(DamagedFile):
                    list(pieces(file, lambda _: None))
        assert hidden >= 1

    def test_members_before_the_damage_count(self, tmp_path: Path) -> None:
        text = [self.part(tmp_path, seed) for seed in range(3)]
        members = [gzip.compress(each) for each in text]
        broken = bytearray(members[1])
        broken[len(broken) // 2] ^= 4
        file, good = tmp_path / "day.gz", tmp_path / "good.txt"
        file.write_bytes(members[0] + bytes(broken) + members[2])
        good.write_bytes(text[0])
        lost, read = len(members[1]) + len(members[2]), list[int]()
        with pytest.raises(ValueError, match=rf"day\.gz: the gzip file is damaged.* {lost:,} of"):
            import_log("r6a", file, tmp_path / "log")
        assert not (tmp_path / "log").exists()
        report = import_log("r6a", file, tmp_path / "log", max_bad=0.9, progress=read.append)
        assert (report.events, report.lost_bytes) == (300, lost)
        assert 0 < sum(read) <= report.bytes  # what was read in vain does not count
        assert report.skipped == {DAMAGED: 1}
        assert report.first[DAMAGED].line == 301
        import_log("r6a", good, tmp_path / "expected")
        logs = [EventLog.read(tmp_path / name) for name in ("log", "expected")]
        assert same_events(*logs)
        with pytest.raises(BadRow, match=r"day\.gz: the gzip file is damaged"):
            import_log("r6a", file, tmp_path / "log", strict=True, max_bad=0.9)

    def test_a_small_share_of_many_files_may_be_damaged(self, tmp_path: Path) -> None:
        good, bad = tmp_path / "good.txt", tmp_path / "bad.gz"
        good.write_bytes(self.part(tmp_path, 1, 4000))
        broken = bytearray(gzip.compress(self.part(tmp_path, 0, 40)))
        broken[-5] ^= 1  # the checksum itself
        bad.write_bytes(broken)
        report = import_log("r6a", [good, bad], tmp_path / "log")
        assert (report.events, report.lost_bytes) == (4000, len(broken))
        assert report.lost_bytes < 0.01 * report.bytes

    @pytest.mark.parametrize("workers", [1, 2])
    def test_lines_that_are_parsed_in_python(self, workers: int, tmp_path: Path) -> None:
        row = b'{"user": [1], "pool": ["a"], "shown": "a", "payoff": 0}\n'
        broken = bytearray(gzip.compress(row * 100))
        broken[-5] ^= 1
        file = tmp_path / "events.jsonl.gz"
        file.write_bytes(gzip.compress(row * 50) + bytes(broken))
        report = import_log("jsonl", file, tmp_path / "log", max_bad=1, workers=workers)
        assert (report.events, report.lost_bytes) == (50, len(broken))

    def test_tables(self, tmp_path: Path) -> None:
        broken = bytearray(gzip.compress(b"1,a,a,0\n" * 100))
        broken[-5] ^= 1
        file, none = tmp_path / "events.csv.gz", tmp_path / "none.csv.gz"
        head = gzip.compress(b"user_x,pool,shown,payoff\n" + b"1,a,a,0\n" * 50)
        file.write_bytes(head + bytes(broken))
        none.write_bytes(bytes(broken))
        report = import_log("csv", [file, none], tmp_path / "log", max_bad=1)
        assert (report.events, report.lost_bytes) == (50, 2 * len(broken))


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_blank_propensities_are_counted_where_others_have_one(format: str, tmp_path: Path) -> None:
    file = tmp_path / "events"
    rows = [("a", "0.7"), ("b", ""), ("a", ""), ("b", "0.3")]
    if format == "csv":
        text = "user_x,pool,shown,payoff,propensity\n"
        text += "".join(f"1,a|b,{shown},0,{p}\n" for shown, p in rows)
    else:
        text = "".join(
            f'{{"user": [1], "pool": ["a", "b"], "shown": "{shown}", "payoff": 0'
            + (f', "propensity": {p}}}\n' if p else "}\n")
            for shown, p in rows
        )
    file.write_text(text)
    report = import_log(format, file, tmp_path / "log")
    assert report.noted == {BLANK_PROPENSITY: 2}
    assert report.first[BLANK_PROPENSITY].line == (3 if format == "csv" else 2)
    log = EventLog.read(tmp_path / "log")
    assert log.propensities_recorded == 2
    assert log.propensity.tolist() == pytest.approx([0.7, 0.5, 0.5, 0.3])
    none = text.replace("0.7", "").replace("0.3", "")
    if format == "csv":
        file.write_text(none)  # the log has no propensities at all: nothing to remark on
        assert import_log(format, file, tmp_path / "log").noted == {}
        assert EventLog.read(tmp_path / "log").propensities_recorded == 0


@pytest.mark.parametrize("name", ["propensty", "Propensity", "probability", "pscore"])
@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_a_misspelt_propensity_is_noted(format: str, name: str, tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"user": [[1.0]] * 2, "pool": [["a", "b"]] * 2, "shown": ["a", "b"], "payoff": [0, 1]}
    )
    table[name] = [0.7, 0.3]
    file = tmp_path / "events"
    if format == "parquet":
        table.to_parquet(file)
    elif format == "jsonl":
        table.to_json(file, orient="records", lines=True)
    else:
        table["user"], table["pool"] = "1", "a|b"
        table.to_csv(file, index=False)
    report = import_log(format, file, tmp_path / "log")
    [remark] = report.noted
    assert (
        remark == f"the field {name!r} is not read: if it is the propensity, call it 'propensity'"
    )
    assert report.first[remark].line == 1
    assert EventLog.read(tmp_path / "log").propensities_recorded == 0


@pytest.mark.parametrize("value", ["O.7", " ", "0,7", "nan", "none"])
def test_a_misspelt_value_is_a_bad_row(value: str, tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text(f'user_x,pool,shown,payoff,propensity\n1,a|b,a,0,0.7\n1,a|b,b,0,"{value}"\n')
    report = import_log("csv", file, tmp_path / "log", max_bad=0.5)
    assert report.skipped == {"the propensity is outside (0, 1]": 1}


def test_where_all_rows_are_bad_the_reasons_are_told(tmp_path: Path) -> None:
    file = tmp_path / "day.txt"
    file.write_text(LINE.replace("id-2 1", "id-9 1") * 3 + LINE.replace("id-2 1", "id-2 7"))
    with pytest.raises(ValueError, match=r"there are no events in it: 3 times the shown article is "
        r"not among those listed, first at \S*day\.txt:1: .*; 1 times the click is not 0 or 1, "
        r"first at \S*day\.txt:4: .*; nothing was written"):  # fmt: skip
        import_log("r6b", file, tmp_path / "log", max_bad=1)


@pytest.mark.parametrize("format", ["r6a", "r6b", "jsonl", "csv"])
def test_a_byte_order_mark_is_skipped(format: str, tmp_path: Path) -> None:
    plain, marked = tmp_path / "plain", tmp_path / "marked"
    if format == "r6a":
        write_r6a(plain, 50)
    else:
        plain.write_text(
            {
                "r6b": LINE,
                "jsonl": '{"user": [1], "pool": ["a"], "shown": "a", "payoff": 0}\n',
                "csv": "user_x,pool,shown,payoff\n1,a,a,0\n",
            }[format]
        )
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    report = import_log(format, marked, tmp_path / "log", strict=True)
    assert report.events == import_log(format, plain, tmp_path / "log", strict=True).events


@pytest.mark.parametrize("content", [b"", b"\n"])
def test_a_file_without_events_is_an_error(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "day.txt"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"day\.txt"):
        import_log("r6b", file, tmp_path / "log")
    assert [path.name for path in tmp_path.iterdir()] == ["day.txt"]


def test_mistakes_are_reported_before_anything_is_read(tmp_path: Path) -> None:
    out = tmp_path / "log"
    with pytest.raises(FileNotFoundError, match=r"nowhere\.gz: there is no such file"):
        import_log("r6a", tmp_path / "nowhere.gz", out)
    with pytest.raises(FileNotFoundError, match="it is a folder"):
        import_log("r6a", tmp_path, out)
    with pytest.raises(FileNotFoundError, match=f"{os.devnull}: it is not a regular file"):
        import_log("r6a", os.devnull, out)
    with pytest.raises(ValueError, match="there is nothing to import"):
        import_log("r6a", [], out)
    with pytest.raises(ValueError, match="r6a has no option 'position'"):
        import_log("r6a", __file__, out, position=1)
    with pytest.raises(ValueError, match="max_bad is a share"):
        import_log("r6a", __file__, out, max_bad=5)
    assert list(tmp_path.iterdir()) == []


def test_an_error_on_the_way_leaves_nothing_and_no_thread(tmp_path: Path) -> None:
    plain, file = tmp_path / "day.txt", tmp_path / "day.gz"
    write_r6a(plain, 20_000)
    file.write_bytes(gzip.compress(plain.read_bytes(), 1))

    def stop(more: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_log("r6a", file, tmp_path / "log", progress=stop)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["day.gz", "day.txt"]
    assert not [t for t in threading.enumerate() if t.name.startswith(("decompress", "append"))]


# Not getrusage: its peak counts the memory of the process that started this one.
MEASURED = """
import sys
from benchmarks.memory import peak
from topstory.events.formats.importing import import_log
report = import_log(sys.argv[1], sys.argv[2], sys.argv[3])
print(report.events, peak())
"""


def test_a_million_lines_stay_under_the_memory_bound(tmp_path: Path) -> None:
    part, file = tmp_path / "part.txt", tmp_path / "day.gz"
    write_r6a(part, 20_000)
    squeezed = gzip.compress(part.read_bytes(), 1)
    with file.open("wb") as out:
        for _ in range(50):
            out.write(squeezed)
    reported = subprocess.run(
        [sys.executable, "-c", MEASURED, "r6a", file, tmp_path / "log"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    events, most = map(int, reported.stdout.split())
    assert events == 1_000_000
    assert most < 1_000_000_000


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_leaves_no_half_written_log(tmp_path: Path) -> None:
    part, file = tmp_path / "part.txt", tmp_path / "day.gz"
    write_r6a(part, 20_000)
    file.write_bytes(gzip.compress(part.read_bytes(), 1) * 200)
    command = "from topstory.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "import", "r6a", str(file), str(tmp_path / "log")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + 60
    while not list(tmp_path.glob(".log.writing-*")) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    reported = process.communicate(timeout=60)
    assert process.returncode == 130, reported
    assert sorted(path.name for path in tmp_path.iterdir()) == ["day.gz", "part.txt"]
