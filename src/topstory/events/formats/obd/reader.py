"""The Open Bandit Dataset: impressions of fashion items at ZOZOTOWN (docs/guides/importing.md).

Saito, Aihara, Matsutani and Narita, "Open Bandit Dataset and Pipeline: Towards Realistic and
Reproducible Off-Policy Evaluation", 2020.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from topstory.events.columns.articles import ArticleTable
from topstory.events.columns.pools import PoolTable
from topstory.events.formats.faults import Faults
from topstory.events.formats.obd.features import (
    AFFINITY_PREFIX,
    USER_PREFIX,
    UserCategories,
    read_categories,
    read_items,
)
from topstory.events.formats.options import ReaderOptions
from topstory.events.formats.pipeline.validation import (
    NOT_IN_POOL,
    ParsedRows,
    RejectedRow,
    validate,
)
from topstory.events.formats.reader import Progress
from topstory.events.formats.tabular.arrow_columns import (
    as_text,
    column_numbers,
    column_times,
    dictionary_codes,
)
from topstory.events.formats.tabular.csv_tables import CsvTable, csv_tables
from topstory.events.log import EventLog

FIELDS = ("timestamp", "item_id", "position", "click", "propensity_score")
ITEMS = "item_context.csv"
OTHER_POSITION = "it was shown at another position than the one asked for"


class ObdReader:
    """Reads the log of a campaign, and the items from the file beside it.

    >>> ObdReader().name
    'obd'
    """

    name = "obd"
    options: Mapping[str, str] = {
        "item_context": f"the file of items (default: {ITEMS} beside the log)",
        "position": "1, 2 or 3: only what was shown at that place (default: all)",
        "affinity": "yes: the user-item affinities are user features too (default no)",
    }
    parallel = False

    def read(
        self,
        files: Sequence[Path],
        faults: Faults,
        progress: Progress,
        workers: int = 1,
        **options: Any,
    ) -> Iterator[tuple[Path, EventLog]]:
        """The events. Files are read twice: first for the values that user features take."""
        chosen = ReaderOptions(self.name, options, self.options)
        position = chosen.choice("position", "all", "1", "2", "3")
        affinity = chosen.flag("affinity")
        items = chosen.text("item_context")
        articles = read_items(_items_of(files, items))
        half = _TwoPassProgress(progress)
        categories = read_categories(files, half.first, faults.intact)

        def wanted(name: str) -> bool:
            return name in FIELDS or name.startswith(
                (USER_PREFIX, AFFINITY_PREFIX) if affinity else USER_PREFIX
            )

        for path in files:
            for table in csv_tables(path, faults, half.second, wanted):
                rows = _rows(path, table, articles, categories, affinity, position, faults)
                valid = validate(rows, faults)
                if valid is not None:
                    yield path, valid.log


class _TwoPassProgress:
    """Progress of two passes over the files: each byte counts half in each."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._odd = 0

    def first(self, count: int) -> None:
        self._odd += count % 2
        self._progress(count // 2)

    def second(self, count: int) -> None:
        # Makes up for what the first pass rounded down.
        rest, self._odd = self._odd, 0
        self._progress(count // 2 + rest)


def _items_of(files: Sequence[Path], given: str | None) -> Path:
    """The one file of items that goes with all of the logs."""
    if given is not None:
        return Path(given)
    beside = list(dict.fromkeys(path.parent / ITEMS for path in files))
    for path in beside:
        if not path.is_file():
            raise FileNotFoundError(
                f"{path}: there is no such file; pass item_context=PATH to say where the items are"
            )
    if len({path.read_bytes() for path in beside}) > 1:
        raise ValueError(
            f"{beside[0]} and {beside[1]} list different items; import the campaigns apart"
        )
    if not beside:
        raise ValueError("obd: no files to read")
    return beside[0]


def _rows(
    path: Path,
    table: CsvTable,
    articles: ArticleTable,
    categories: UserCategories,
    affinity: bool,
    position: str,
    faults: Faults,
) -> ParsedRows:
    columns = table.columns
    for name in FIELDS:
        if name not in columns:
            raise ValueError(
                f"{path}: there is no column {name!r}; a log of the Open Bandit Dataset has "
                f"{', '.join(FIELDS)}, {USER_PREFIX}… and {AFFINITY_PREFIX}…"
            )
    dense = categories.one_hot(columns, affinity)
    codes, values = dictionary_codes(columns["item_id"])
    index = [articles.index.get(as_text(value) or "", NOT_IN_POOL) for value in values]
    item = np.array(index, np.int32)[codes]
    place, click = column_numbers(columns["position"]), column_numbers(columns["click"])
    rejected = list(table.rejected)
    bad = np.zeros(len(item), bool)
    for reason, mask in (
        ("the item is not in item_context.csv", item < 0),
        ("the position is not 1, 2 or 3", ~np.isin(place, (1, 2, 3))),
        ("the click is not 0 or 1", ~np.isin(click, (0, 1))),
    ):
        for i in np.flatnonzero(mask & ~bad).tolist():
            rejected.append(RejectedRow(int(table.lines[i]), reason, table.text(i)))
        bad |= mask
    if position != "all":
        others = np.flatnonzero(~bad & (place != int(position)))
        if len(others):
            i = int(others[0])
            line, text = int(table.lines[i]), table.text(i)
            faults.left_out(OTHER_POSITION, str(path), line, text, len(others))
        bad[others] = True
    good = np.flatnonzero(~bad)
    return ParsedRows(
        file=str(path),
        lines=table.lines[good],
        users=dense[good],
        pools=PoolTable.from_lists([articles.ids], articles),
        pool=np.zeros(len(good), np.int32),
        position=item[good],
        payoff=click[good],
        propensity=column_numbers(columns["propensity_score"])[good],
        micros=column_times(columns["timestamp"])[good],
        articles=articles,
        listed=True,
        rejected=rejected,
        text=lambda i: table.text(int(good[i])),
    )
