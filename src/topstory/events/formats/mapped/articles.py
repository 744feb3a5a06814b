"""The file of articles that a mapping names: their profiles, and when each could be shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.profiles import as_profiles
from topstory.events.columns.times import LATEST
from topstory.events.formats.faults import Faults
from topstory.events.formats.mapped.fields import pointed, remark_on, texts, typed_field
from topstory.events.formats.mapped.mapping import ColumnMapping, TimeColumn
from topstory.events.formats.mapped.moments import column_moments
from topstory.events.formats.tabular.arrow_columns import INVALID_TIME
from topstory.events.formats.tabular.csv_tables import delimiter_of
from topstory.events.formats.tabular.json_tables import json_tables
from topstory.events.formats.tabular.parquet_tables import naming_parquet_file

TWICE = "an article is listed twice in the articles file: its last row counts"
NO_ID = "a row of the articles file has no id: it is not used"
NOT_LISTED = "an article that the articles file does not have: its profile is missing"
NO_START = "an article without the time it was live from: it was live from the beginning"
HOUR = 3_600_000_000  # microseconds
HEADER_BYTES = 1 << 16  # the header is not longer


class Articles:
    """The articles that are known so far: those of the file, and others as events name them."""

    def __init__(self, mapping: ColumnMapping, folder: Path, faults: Faults) -> None:
        self._mapping = mapping
        self._ids: dict[str, int] = {}
        self._profiles: pa.Table | None = None
        self.starts = self.ends = np.empty(0, np.int64)  # of the file's articles, microseconds
        self.listed = 0  # articles of the file
        if mapping.articles is not None:
            self._read(folder / mapping.articles.file, faults)
        self._table: ArticleTable | None = None

    def indices(self, names: list[str | None]) -> npt.NDArray[np.int32]:
        """The index of each article, -1 for None; new ones are added."""
        ids = self._ids
        return np.array(
            [-1 if name is None else ids.setdefault(name, len(ids)) for name in names], np.int32
        )

    def known(self, name: str | None) -> int:
        """The index of an article, -1 if there is none of that name."""
        return -1 if name is None else self._ids.get(name, -1)

    def table(self) -> ArticleTable:
        """All of them."""
        if self._table is None or len(self._table.ids) < len(self._ids):
            ids = tuple(self._ids)
            profiles = self._profiles
            if profiles is not None and len(ids) > self.listed:
                more = len(ids) - self.listed
                blank = pa.table({f.name: pa.nulls(more, f.type) for f in profiles.schema})
                kinds = {name: field.kind for name, field in self._mapping.article.items()}
                stacked = pa.concat_tables([profiles, blank.cast(profiles.schema)])
                profiles = as_profiles("article_profiles", stacked, len(ids), kinds=kinds)
            self._table = ArticleTable(ids, None, profiles)
        return self._table

    def _read(self, path: Path, faults: Faults) -> None:
        """The file; where an article is listed twice, its last row counts."""
        mapping, spec = self._mapping, self._mapping.articles
        assert spec is not None
        table = read_table(path, faults, spec.encoding or mapping.encoding)
        times = [each for each in (spec.from_, spec.until) if each is not None]
        wanted = [spec.id, *(field.column for field in mapping.article.values())]
        for name in (*wanted, *(each.column for each in times)):
            if name not in table.column_names:
                raise ValueError(
                    f"{path}: there is no column {name!r}; it has {', '.join(table.column_names)}"
                )
        codes, values = texts(table.column(spec.id).combine_chunks(), mapping.missing)
        last: dict[str, int] = {}
        again = nameless = 0
        for row, code in enumerate(codes.tolist()):
            key = values[code]
            if key is None:
                nameless += 1
                continue
            again += key in last
            last[key] = row
        for remark, count in ((TWICE, again), (NO_ID, nameless)):
            if count:
                faults.note(remark, str(path), 0, count=count)
        if not last:
            raise ValueError(f"{path}: there are no articles in it")
        rows = table.take(pa.array(list(last.values()), pa.int64())).combine_chunks()
        self._ids = {key: i for i, key in enumerate(last)}
        self.listed = len(last)
        if mapping.article:
            self._profiles = self._described(rows, path, faults)
        self.starts = _moments(rows, spec.from_, -LATEST)
        self.ends = _moments(rows, spec.until, LATEST)
        if spec.live_hours is not None:
            hours = np.where(self.starts == -LATEST, LATEST, int(spec.live_hours * HOUR))
            self.ends = np.where(self.ends == LATEST, self.starts + hours, self.ends)
        if spec.from_ is not None and (lacking := int((self.starts == -LATEST).sum())):
            faults.note(NO_START, str(path), 0, count=lacking)

    def _described(self, rows: pa.Table, path: Path, faults: Faults) -> pa.Table:
        columns = {}
        fields, spec = self._mapping.article, self._mapping.articles
        decimal = (spec and spec.decimal) or self._mapping.decimal
        for name, field in fields.items():
            column = rows.column(field.column).combine_chunks()
            if field.kind == "number":
                column = pointed(column, decimal)
            columns[name], unreadable = typed_field(column, field, self._mapping.missing)
            if unreadable.any():
                remark = remark_on("article", name, field)
                value = column[int(unreadable.argmax())].as_py()
                faults.note(remark, str(path), 0, str(value), int(unreadable.sum()))
        kinds = {name: field.kind for name, field in fields.items()}
        return as_profiles("article_profiles", columns, kinds=kinds)


def _moments(rows: pa.Table, column: TimeColumn | None, default: int) -> npt.NDArray[np.int64]:
    if column is None:
        return np.full(rows.num_rows, default)
    found = column_moments(rows.column(column.column).combine_chunks(), column.format)
    return np.where(found == INVALID_TIME, default, found)


def read_table(path: Path, faults: Faults, encoding: str | None = None) -> pa.Table:
    """A whole file: .csv, .jsonl or .parquet; texts may hold line breaks.

    `encoding`: of the text of a CSV file, if it is not UTF-8.
    """
    kind = next((suffix for suffix in path.suffixes[::-1] if suffix != ".gz"), "")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file of articles")
    if kind == ".csv":
        return _csv_table(path, faults, encoding or "utf-8")
    if kind in (".jsonl", ".ndjson", ".json"):
        rows: list[Any] = []
        for part in json_tables(path, faults, lambda _: None, lambda _: True):
            rows += pa.table(part.columns).to_pylist()
            for bad in part.rejected:
                faults.add(bad.reason, str(path), bad.line, bad.text)
        names = dict.fromkeys(name for row in rows for name in row)
        return pa.table({name: [row.get(name) for row in rows] for name in names})
    if kind == ".parquet":
        with naming_parquet_file(path):
            return pq.read_table(path)
    raise ValueError(f"{path}: articles come as .csv, .jsonl or .parquet, not {kind or 'that'!r}")


def _csv_table(path: Path, faults: Faults, encoding: str) -> pa.Table:
    bad: list[pacsv.InvalidRow] = []

    def skip(row: pacsv.InvalidRow) -> Any:
        bad.append(row)
        return "skip"

    try:
        with pa.input_stream(path, compression="detect") as opened:
            start = opened.read(HEADER_BYTES).decode(encoding, "replace")
        parsing = pacsv.ParseOptions(
            delimiter=delimiter_of(start.partition("\n")[0]),
            newlines_in_values=True,
            invalid_row_handler=skip,
        )
        reading = pacsv.ReadOptions(use_threads=False, encoding=encoding)
        with pacsv.open_csv(path, reading, parsing) as parsed:
            names = parsed.schema.names
        bad.clear()  # the start of the file is read again
        table = pacsv.read_csv(
            path,
            reading,
            parsing,
            pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path}: not a CSV file in {encoding}: {error}; if it is another encoding, say so, "
            'as in [articles] encoding = "cp1252"'
        ) from None
    if bad:
        faults.add(
            "a row of the articles file has another number of fields than its header",
            str(path),
            bad[0].number or 0,
            bad[0].text,
            len(bad),
        )
    return table
