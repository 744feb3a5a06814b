"""Files are read in the order of time, or a warning reports that they are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.events.formats.test_importing import LINE

from topstory.events import EventLog
from topstory.events.formats.importing import import_log
from topstory.events.formats.source_files import UNORDERED_FILES, find_files


def test_a_pattern_stands_for_its_files_in_order(tmp_path: Path) -> None:
    for day in (3, 1, 2):
        (tmp_path / f"day{day}.txt").write_text(LINE.replace("1317513291", str(day)))
    report = import_log("r6b", str(tmp_path / "day*.txt"), tmp_path / "log")
    assert [Path(name).name for name in report.files] == ["day1.txt", "day2.txt", "day3.txt"]
    times = EventLog.read(tmp_path / "log").timestamps
    assert times is not None
    assert times.astype("M8[s]").astype(int).tolist() == [1, 2, 3]


def test_a_pattern_sorts_runs_of_digits_as_numbers(tmp_path: Path) -> None:
    for name in ("day10", "day2", "day1", "day", "day01", "week2.day1", "week10.day1"):
        (tmp_path / name).write_text(LINE)
    found = [path.name for path in find_files(str(tmp_path / "*day*"))]
    assert found == ["day", "day01", "day1", "day2", "day10", "week2.day1", "week10.day1"]


def days(folder: Path, *numbers: int) -> list[Path]:
    """A CSV file for each day, with ten events an hour apart."""
    files = [folder / f"day{day}.csv" for day in numbers]
    for day, file in zip(numbers, files, strict=True):
        rows = [f"{day * 86_400 + hour * 3_600},1,a|b,a,0\n" for hour in range(10)]
        file.write_text("timestamp,user,pool,shown,payoff\n" + "".join(rows))
    return files


def test_files_that_are_not_in_the_order_of_time_are_noted(tmp_path: Path) -> None:
    one, two, ten = days(tmp_path, 1, 2, 10)
    out = tmp_path / "log"
    assert import_log("csv", str(tmp_path / "day*.csv"), out).noted == {}
    assert import_log("csv", [one, two, ten], out).noted == {}
    report = import_log("csv", [one, ten, two], out)
    assert report.noted == {UNORDERED_FILES: 10}
    assert report.first[UNORDERED_FILES].file == str(two)
    assert import_log("csv", [ten, two, one], out).noted == {UNORDERED_FILES: 20}
    assert import_log("csv", [two, two], out).noted == {UNORDERED_FILES: 9}


@pytest.mark.parametrize("format", ["r6a", "r6b"])
def test_yahoos_files_that_are_not_in_the_order_of_time_are_noted(
    tmp_path: Path, format: str
) -> None:
    line = LINE
    if format == "r6a":
        features = "2:0.1 3:0.2 4:0.3 5:0.2 6:0.2 1:1.0"
        line = f"1317513291 1 0 |user {features} |1 {features} |2 {features}\n"
    files = [tmp_path / f"day{day}.txt" for day in (1, 2, 3)]
    for day, file in enumerate(files):
        file.write_text(line.replace("1317513291", str(day)) * 5)
    assert import_log(format, files, tmp_path / "log").noted == {}
    report = import_log(format, [files[0], files[2], files[1]], tmp_path / "log")
    assert report.noted == {UNORDERED_FILES: 5}
    assert report.first[UNORDERED_FILES].file == str(files[1])


def test_a_file_that_is_shuffled_in_itself_is_not_noted(tmp_path: Path) -> None:
    one, two = days(tmp_path, 1, 2)
    header, *rows = two.read_text().splitlines()
    two.write_text("\n".join([header, *rows[::-1]]))
    assert import_log("csv", [one, two], tmp_path / "log").noted == {}
