"""The Open Bandit Dataset comes in as it is written, and every bad row is counted."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.events.formats.whole_logs import whole

from topstory.events import EventLog
from topstory.events.formats.faults import BadRow, Faults
from topstory.events.formats.importing import import_log
from topstory.events.formats.obd.reader import OTHER_POSITION

FIXTURE = Path(__file__).parents[3] / "fixtures" / "open_bandit" / "men"


@pytest.fixture
def men(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURE, tmp_path / "men")
    return tmp_path / "men" / "men.csv"


def obd(path: Path, faults: Faults | None = None, **options: object) -> EventLog:
    return whole("obd", path, faults=faults, **options)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_real_log_comes_in_as_a_naive_parser_reads_it() -> None:
    log, rows = obd(FIXTURE / "men.csv"), rows_of(FIXTURE / "men.csv")
    assert len(log) == len(rows) == 300
    assert log.shown.tolist() == [row["item_id"] for row in rows]
    assert log.payoff.tolist() == [float(row["click"]) for row in rows]
    assert log.timestamps is not None
    assert [str(time) for time in log.timestamps] == [
        row["timestamp"].removesuffix("+00:00").replace(" ", "T") for row in rows
    ]
    assert log.pools == [[row["item_id"] for row in rows_of(FIXTURE / "item_context.csv")]]


def test_a_uniform_log_needs_no_recorded_propensity() -> None:
    assert obd(FIXTURE / "men.csv").recorded_propensity is None


def test_categories_have_a_place_for_each_value_and_the_constant_is_last() -> None:
    log, rows = obd(FIXTURE / "men.csv"), rows_of(FIXTURE / "men.csv")
    names = [f"user_feature_{i}" for i in range(4)]
    places = [(name, value) for name in names for value in sorted({row[name] for row in rows})]
    expected = [[*(row[name] == value for name, value in places), True] for row in rows]
    np.testing.assert_array_equal(log.users, np.array(expected, np.float32))


def test_items_keep_their_number_and_their_categories() -> None:
    log = obd(FIXTURE / "men.csv")
    assert log.features is not None
    rows = rows_of(FIXTURE / "item_context.csv")
    np.testing.assert_array_equal(log.features[:, 0], [float(r["item_feature_0"]) for r in rows])
    np.testing.assert_array_equal(log.features[:, 1:].sum(axis=1), np.full(len(rows), 4.0))


def test_affinities_are_user_features_if_they_are_asked_for() -> None:
    plain, rich = obd(FIXTURE / "men.csv"), obd(FIXTURE / "men.csv", affinity="yes")
    assert rich.dimension == plain.dimension + 34
    rows = rows_of(FIXTURE / "men.csv")
    sums = [sum(float(row[f"user-item_affinity_{i}"]) for i in range(34)) for row in rows]
    np.testing.assert_allclose(np.asarray(rich.users)[:, -35:-1].sum(axis=1), sums)


def test_one_position_or_all_of_them() -> None:
    rows = rows_of(FIXTURE / "men.csv")
    for position in "123":
        shown = [row["item_id"] for row in rows if row["position"] == position]
        assert obd(FIXTURE / "men.csv", position=position).shown.tolist() == shown


def test_rows_of_other_positions_are_counted_as_left_out(men: Path, tmp_path: Path) -> None:
    lines = men.read_text().splitlines()
    lines[41] = ",".join([*lines[41].split(",")[:4], "yes", *lines[41].split(",")[5:]])
    men.write_text("\n".join(lines))
    rows = [row for row in rows_of(men) if row["click"] != "yes"]
    others = [i for i, row in enumerate(rows_of(men), 2) if row["position"] != "1" and i != 42]
    report = import_log("obd", men, tmp_path / "log", position="1")
    assert report.events == sum(row["position"] == "1" for row in rows)
    assert report.left_out == {OTHER_POSITION: len(others)}
    assert report.skipped == {"the click is not 0 or 1": 1}
    assert report.rows == 300
    assert report.bad == 1 / 300
    first = report.first[OTHER_POSITION]
    assert (first.line, first.file) == (others[0], str(men))
    assert lines[first.line - 1].startswith(first.text[:40])
    assert import_log("obd", men, tmp_path / "log").left_out == {}


def test_rows_that_are_left_out_are_no_error_in_a_strict_import(men: Path) -> None:
    assert len(obd(men, Faults(strict=True), position="1")) < 300


@pytest.mark.parametrize("affinity", ["yes", "no"])
@pytest.mark.parametrize("kind", ["user_feature_", "user-item_affinity_"])
@pytest.mark.parametrize("poorer", [0, 1])
def test_files_with_other_user_columns_are_refused(
    men: Path, tmp_path: Path, poorer: int, kind: str, affinity: str
) -> None:
    rows = [row.split(",") for row in men.read_text().splitlines()]
    gone = max(i for i, name in enumerate(rows[0]) if name.startswith(kind))
    less = men.parent / "less.csv"
    less.write_text("\n".join(",".join(row[:gone] + row[gone + 1 :]) for row in rows))
    files = [men, less] if poorer else [less, men]
    what = {"user_feature_": "user features", "user-item_affinity_": "user-item affinities"}[kind]
    with pytest.raises(ValueError, match=f"{files[1].name}: its {what} are not those of .*csv$"):
        import_log("obd", files, tmp_path / "log", affinity=affinity)


BAD: list[tuple[str, Callable[[list[str]], list[str]]]] = [
    ("the row has another number of fields than the header", lambda row: row[:-1]),
    ("the item is not in item_context.csv", lambda row: [*row[:2], "99", *row[3:]]),
    ("the position is not 1, 2 or 3", lambda row: [*row[:3], "4", *row[4:]]),
    ("the click is not 0 or 1", lambda row: [*row[:4], "yes", *row[5:]]),
    ("the propensity is outside (0, 1]", lambda row: [*row[:5], "1.5", *row[6:]]),
    ("the propensity is outside (0, 1]", lambda row: [*row[:5], "x", *row[6:]]),
    ("the timestamp is outside the years 1 to 9999", lambda row: [row[0], "soon", *row[2:]]),
]


@pytest.mark.parametrize(("reason", "spoil"), BAD)
def test_a_bad_row_is_counted_with_its_line(
    men: Path, reason: str, spoil: Callable[[list[str]], list[str]]
) -> None:
    lines = men.read_text().splitlines()
    lines[41] = ",".join(spoil(lines[41].split(",")))
    men.write_text("\n".join(lines))
    faults = Faults()
    assert len(obd(men, faults)) == 299
    assert faults.counts == {reason: 1}
    assert faults.first[reason].line == 42
    with pytest.raises(BadRow, match=r"men\.csv:42: "):
        obd(men, Faults(strict=True))


def test_blank_lines_and_windows_line_ends_mean_nothing(men: Path) -> None:
    before = obd(men)
    men.write_bytes(men.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n")
    faults = Faults()
    after = obd(men, faults)
    assert not faults.counts
    assert after.shown.tolist() == before.shown.tolist()
    np.testing.assert_array_equal(np.asarray(after.users), np.asarray(before.users))


def test_missing_items_are_asked_for(men: Path) -> None:
    items = men.parent / "item_context.csv"
    elsewhere = items.rename(men.parent / "items.csv")
    with pytest.raises(FileNotFoundError, match="pass item_context=PATH"):
        obd(men)
    assert len(obd(men, item_context=str(elsewhere))) == 300


def test_another_csv_is_refused_with_what_was_expected(men: Path) -> None:
    other = men.parent / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"other\.csv: there is no column 'timestamp'"):
        obd(other)
