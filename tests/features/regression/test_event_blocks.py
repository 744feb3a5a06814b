"""A raw log that stays in its folder: workers read it, and the numbers are those of the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.features.clustering.test_fit import purity
from tests.features.worlds import TEACHING_NOTHING, clear_log, clear_world, little_log

import topstory as ts
from topstory.engines import engine
from topstory.events.folder.stream import RawFolder
from topstory.features.regression.event_blocks import EventBlock, FolderBlocks

LITTLE: dict[str, Any] = {"clusters": 2, "support": 0.0, "ridge": 1.0, "engine": "serial"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten days, so ten files."""
    path = tmp_path_factory.mktemp("logs") / "clear"
    clear_log().write(path)
    return path


def test_parts_are_the_log(folder: Path) -> None:
    source, articles, users = RawFolder.opened(folder)
    log = clear_log()
    assert users is not None
    assert articles.ids == log.article_ids
    parts = list(source.parts(50_000))
    assert len(parts) > 2
    assert sum(part.events for part in parts) == len(log)
    assert [part.start for part in parts[1:]] == np.cumsum([p.events for p in parts])[:-1].tolist()
    columns = [np.concatenate(column) for column in zip(*map(source.read, parts), strict=True)]
    assert log.visitors is not None
    for found, wanted in zip(
        columns, (log.visitors.number, log.shown_index, log.payoff), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["serial", "local", "ray"])
def test_a_fit_of_the_folder_is_one_of_the_log_on_every_engine(folder: Path, name: str) -> None:
    given: dict[str, Any] = {"support": 0.02, "ridge": 3.0, "max_iter": 4}
    wanted = ts.FeatureBuilder(**given).fit(clear_log())
    found = ts.FeatureBuilder(**given, engine=engine(name, workers=2)).fit_folder(folder)
    np.testing.assert_allclose(found.model_.coef_, wanted.model_.coef_, atol=1e-6)
    profiles = clear_log().profiles
    np.testing.assert_allclose(found.users(profiles), wanted.users(profiles), atol=1e-5)
    assert found.model_.auc_ == pytest.approx(wanted.model_.auc_, abs=1e-6)


def test_events_that_are_read_again_give_the_same_bits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    read = FolderBlocks.__call__

    def counted(self: FolderBlocks, part: Any) -> EventBlock:
        nonlocal reads
        reads += 1
        return read(self, part)

    monkeypatch.setattr(FolderBlocks, "__call__", counted)
    given: dict[str, Any] = {"support": 0.05, "ridge": 3.0, "max_iter": 2, "engine": "serial"}
    kept = ts.FeatureBuilder(**given).fit_folder(folder)
    once, reads = reads, 0
    again = ts.FeatureBuilder(**given).fit_folder(folder, in_memory=0)
    assert reads > 3 * once
    assert again.model_.coef_.tobytes() == kept.model_.coef_.tobytes()
    assert again.model_.history_ == kept.model_.history_


def test_mini_batches_of_a_folder_find_the_groups(folder: Path) -> None:
    builder = ts.FeatureBuilder(support=0.001, ridge=3.0).fit_folder(folder, passes=3)
    truth = clear_world().population.groups.argmax(axis=1)
    assert purity(builder.segments(clear_log().profiles), truth) >= 0.8


def test_the_workers_alone_read_the_events(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Ray, whose workers are other processes, a caller that cannot read them still fits."""

    def refused(self: RawFolder, part: Any) -> Any:
        raise AssertionError("the caller read events")

    runs = engine("ray", workers=2)
    monkeypatch.setattr(RawFolder, "read", refused)
    ts.FeatureBuilder(support=0.1, max_iter=1, engine=runs).fit_folder(folder)


@pytest.mark.parametrize(("changes", "message"), TEACHING_NOTHING)
@pytest.mark.parametrize("passes", [None, 1])
def test_a_folder_that_teaches_nothing_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str, passes: int | None
) -> None:
    little_log(**changes).write(tmp_path / "log")
    with pytest.raises(ValueError, match=message):
        ts.FeatureBuilder(**LITTLE).fit_folder(tmp_path / "log", passes=passes)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    little_log()[:0].write(tmp_path / "log")
    with pytest.raises(ValueError, match="the log has no events"):
        ts.FeatureBuilder(**LITTLE).fit_folder(tmp_path / "log")


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("visitor", pa.array([40] * 2000, pa.int32()), "row 0: visitor 40; there are 40 users"),
        ("shown", pa.array(["x"] * 2000), "row 0: shown article 'x' is not in articles.parquet"),
        ("payoff", pa.array([float("nan")] * 2000, pa.float32()), "row 0: payoff nan"),
    ],
)
def test_events_that_do_not_fit_the_log_are_named(
    tmp_path: Path, column: str, values: Any, message: str
) -> None:
    little_log().write(tmp_path / "log")
    (path,) = (tmp_path / "log" / "events").iterdir()
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.column_names.index(column), column, values), path)
    with pytest.raises(ValueError, match=message):
        ts.FeatureBuilder(**LITTLE).fit_folder(tmp_path / "log")


def test_a_folder_of_another_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        ts.FeatureBuilder(**LITTLE).fit_folder(tmp_path / "log")
    with pytest.raises(ValueError, match="passes must be at least 1"):
        ts.FeatureBuilder(**LITTLE).fit_folder(tmp_path / "log", passes=0)
