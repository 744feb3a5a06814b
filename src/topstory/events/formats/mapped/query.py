"""An SQL query over files of events, through DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from topstory.events.formats.faults import Faults
from topstory.events.formats.pipeline.lines import line_blocks
from topstory.events.formats.reader import MAX_BATCH_EVENTS, Progress
from topstory.events.formats.tabular.table_part import TablePart
from topstory.extras import require

REJECTED = "DuckDB could not read the row, or a value of it"
_FUNCTIONS = {"csv": "read_csv", "jsonl": "read_json", "parquet": "read_parquet"}


def query_tables(
    query: str,
    format: str,
    files: Sequence[Path],
    faults: Faults,
    progress: Progress,
    check: Callable[[Path, list[str]], None],
) -> Iterator[tuple[Path, TablePart]]:
    """The rows of a query, in which the files are the table `events`.

    Rows are counted as the query gives them: there are no lines. Rows of CSV that DuckDB cannot
    read are bad rows. `check` is told the columns.
    """
    require("sql")
    import duckdb

    place = Path("query")
    connection = duckdb.connect(config={"autoinstall_known_extensions": False})
    try:
        # A name in a query is a table or a file, never a variable of this program.
        connection.execute("set python_enable_replacements = false")
        names = ", ".join(_quoted(str(path)) for path in files)
        source = f"{_FUNCTIONS[format]}([{names}]{_options(format, files[0])})"
        connection.execute(f"create view events as select * from {source}")
        found = connection.sql(query)
        if found is None:
            raise ValueError(f"the query gives no rows: begin it with select, got {query!r}")
        reader = _arrow_reader(found)
        check(place, reader.schema.names)
        done = 0
        for batch in reader:
            columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
            lines = np.arange(done, done + len(batch)) + 1
            yield place, TablePart(columns, lines, [], lambda _: b"")
            done += len(batch)
        if format == "csv":
            _count_rejected(connection, faults)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"the query failed: {reason}; the files are the table `events` in it"
        ) from None
    finally:
        connection.close()
    progress(sum(path.stat().st_size for path in files))


def _options(format: str, first: Path) -> str:
    """What DuckDB shall not guess, since broken rows mislead it."""
    if format == "jsonl":
        return ", format = 'newline_delimited'"
    if format == "parquet":
        return ""
    block = next(line_blocks(first, Faults(), lambda _: None), None)
    header = b"" if block is None else block.data.partition(b"\n")[0]
    delimiter = max(",;\t|", key=lambda each: header.count(each.encode()))
    return f", header = true, delim = {_quoted(delimiter)}, quote = '\"', store_rejects = true"


def _count_rejected(connection: Any, faults: Faults) -> None:
    there = connection.sql("select 1 from duckdb_tables() where table_name = 'reject_errors'")
    if not there.fetchall():  # no file was read
        return
    found = connection.sql(
        "select file_path, min(line), count(distinct line), arg_min(csv_line, line) "
        "from reject_errors join reject_scans using (scan_id, file_id) group by file_path"
    )
    for path, line, rows, text in found.fetchall():
        faults.add(REJECTED, path, int(line), text or "", int(rows))


def _arrow_reader(found: Any) -> Any:
    """Record batches; the method has another name in earlier releases of DuckDB."""
    if hasattr(found, "to_arrow_reader"):
        return found.to_arrow_reader(MAX_BATCH_EVENTS)
    return found.fetch_arrow_reader(MAX_BATCH_EVENTS)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
