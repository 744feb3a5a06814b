"""Rows of an export as events, by a mapping."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from topstory.events.columns.checks import Mask
from topstory.events.columns.positions import PositionLookup
from topstory.events.formats.faults import Faults
from topstory.events.formats.mapped.articles import NOT_LISTED, Articles
from topstory.events.formats.mapped.candidates import LivePools, RowPools, listed_pools
from topstory.events.formats.mapped.expression import ExpressionColumns
from topstory.events.formats.mapped.fields import (
    clean_texts,
    not_utf8,
    numbers,
    pointed,
    remark_on,
    texts,
    typed_field,
)
from topstory.events.formats.mapped.mapping import ColumnMapping
from topstory.events.formats.mapped.moments import column_moments
from topstory.events.formats.mapped.people import People
from topstory.events.formats.pipeline.validation import (
    BAD_PAYOFF,
    BAD_PROPENSITY,
    BAD_TIME,
    NOT_IN_POOL,
    SHOWN_NOT_IN_POOL,
    ParsedRows,
    ValidEvents,
    rejected_rows,
    validate,
)
from topstory.events.formats.tabular.arrow_columns import INVALID_TIME
from topstory.events.formats.tabular.table_part import TablePart

NO_CANDIDATES = "there are no candidates in it"
NONE_LIVE = "no article was live at that time"
NOT_LIVE = "the shown article was not live at that time, by the articles file"
VISITOR_NOT_UTF8 = "the visitor is not in UTF-8 here, so it is unknown: set the file's encoding"
NO_SHOWN = "the shown article is missing"
NO_TIME = "the timestamp is missing"
NOT_A_TIME = "the timestamp cannot be read as a time"
LISTED_TWICE = "the candidates list an article twice: it counts once"
NO_PAYOFF = "the payoff is missing: where that means nothing was paid, set missing_payoff = 0"
NOT_A_PAYOFF = (
    "the payoff is not a finite number; where it is a word, compare it, as in "
    "payoff = 'kind == \"click\"'"
)


class MappedParser:
    """Turns parts of tables into events, and keeps what they share: articles and users."""

    def __init__(self, mapping: ColumnMapping, folder: Path, faults: Faults) -> None:
        self._mapping, self._faults = mapping, faults
        self._payoff = mapping.expression()
        self.articles = Articles(mapping, folder, faults)
        self._live = None if mapping.candidates is not None else LivePools(self.articles)
        self._missing = frozenset(mapping.missing)
        self.columns = frozenset(mapping.columns())
        self.encoding = mapping.encoding  # of the events' file
        self._numeric = frozenset(
            [
                *self._payoff.numbers,
                *([] if mapping.propensity is None else [mapping.propensity]),
                *(field.column for field in mapping.user.values() if field.kind == "number"),
            ]
        )
        self._reworded = {
            SHOWN_NOT_IN_POOL: in_columns(SHOWN_NOT_IN_POOL, mapping.shown),
            BAD_PAYOFF: in_columns(BAD_PAYOFF, *self._payoff.columns),
            BAD_PROPENSITY: in_columns(BAD_PROPENSITY, mapping.propensity or ""),
        }
        if mapping.timestamp is not None:
            self._reworded[BAD_TIME] = in_columns(BAD_TIME, mapping.timestamp.column)
        identified = mapping.visitor is not None or mapping.user
        self.people = People(mapping.user) if identified else None

    def check(self, path: Path, names: list[str]) -> None:
        """Raise ValueError for a column that the mapping names and the file does not have."""
        for name in self._mapping.columns():
            if name not in names:
                like = get_close_matches(name, names, 1)
                hint = f"; do you mean {like[0]!r}?" if like else ""
                raise ValueError(
                    f"{path}: there is no column {name!r}, which the mapping names; it has "
                    f"{', '.join(names)}{hint}"
                )

    def events(self, path: Path, part: TablePart) -> ValidEvents | None:
        """The good rows as a log; the others are counted."""
        for name in self._numeric:
            part.columns[name] = pointed(part.columns[name], self._mapping.decimal)
        return validate(self._rows(path, part), self._faults)

    def users(self, path: Path, part: TablePart, rows: Any) -> Any:
        """(len(rows),) the user of each of these rows of the part; None: there are none."""
        if self.people is None:
            return None
        mapping, wanted = self._mapping, pa.array(rows)
        columns = {}
        for name, field in mapping.user.items():
            column = part.columns[field.column].take(wanted)
            columns[name], unreadable = typed_field(column, field, self._missing)
            remark = remark_on("user", name, field)
            if field.column != name:
                remark = in_columns(remark, field.column)
            self._note(unreadable, remark, path, part, rows)
        visitor = None
        if mapping.visitor is not None:
            column = part.columns[mapping.visitor].take(wanted)
            visitor = clean_texts(column, self._missing)
            remark = in_columns(VISITOR_NOT_UTF8, mapping.visitor)
            self._note(not_utf8(column), remark, path, part, rows)
        return self.people.rows(visitor, pa.table(columns))

    def _rows(self, path: Path, part: TablePart) -> ParsedRows:
        mapping, columns, lines = self._mapping, part.columns, part.lines
        rejected = list(part.rejected)
        bad = np.zeros(len(lines), bool)

        def reject(mask: Mask, reason: str, column: str) -> None:
            reason = in_columns(reason, column)
            rejected.extend(rejected_rows(mask & ~bad, reason, lines, part.text))
            bad[mask] = True

        micros = None
        if mapping.timestamp is not None:
            name = mapping.timestamp.column
            micros = column_moments(columns[name], mapping.timestamp.format)
            unknown = micros == INVALID_TIME
            reject(self._absent(columns[name], unknown), NO_TIME, name)
            reject(unknown, NOT_A_TIME, name)
        shown = texts(columns[mapping.shown], self._missing)
        no_shown = np.array([value is None for value in shown.values])[shown.codes]
        reject(no_shown, NO_SHOWN, mapping.shown)
        pools = self._pools(columns, micros)
        empty = (pools.table.sizes == 0)[pools.pool]
        if mapping.candidates is not None:
            reject(empty, NO_CANDIDATES, mapping.candidates.column)
        elif mapping.timestamp is not None:
            reject(empty, NONE_LIVE, mapping.timestamp.column)
        index = np.array([self.articles.known(value) for value in shown.values], np.int32)
        article = index[shown.codes]
        table = self.articles.table()
        position = PositionLookup(pools.table, len(table.ids))(
            pools.pool.astype(np.int32), np.maximum(article, 0)
        )
        position = np.where(article < 0, NOT_IN_POOL, position).astype(np.int32)
        if self._live is not None:
            reject(position < 0, NOT_LIVE, mapping.shown)
        row = self._payoff_columns(part)
        payoff = self._payoff.evaluate(row, len(lines))
        for name in self._payoff.columns:
            unpaid = _unusable(row, name) & ~np.isfinite(payoff) & ~bad
            reject(self._absent(columns[name], unpaid), NO_PAYOFF, name)
            reject(unpaid, NOT_A_PAYOFF, name)
        good = np.flatnonzero(~bad)
        self._note(pools.repeated[good], LISTED_TWICE, path, part, good)
        self._note(pools.unlisted[good], NOT_LISTED, path, part, good)
        propensity, blank = self._propensity(part, pools, good)
        return ParsedRows(
            file=str(path),
            lines=lines[good],
            users=np.ones((len(good), 1), np.float32),
            pools=pools.table,
            pool=pools.pool[good].astype(np.int32),
            position=position[good],
            payoff=payoff[good],
            propensity=propensity,
            micros=None if micros is None else micros[good],
            articles=table,
            listed=self.articles.listed,
            rejected=rejected,
            text=lambda i: part.text(int(good[i])),
            blank=blank,
            reworded=self._reworded,
        )

    def _absent(self, column: Any, mask: Mask) -> Mask:
        """Where, of the rows of a mask, the column has no value."""
        absent = np.zeros(len(mask), bool)
        if mask.any():
            some = np.flatnonzero(mask)
            codes, values = texts(column.take(pa.array(some)), self._missing)
            absent[some] = np.array([value is None for value in values])[codes]
        return absent

    def _pools(self, columns: dict[str, Any], micros: Any) -> RowPools:
        spec = self._mapping.candidates
        if spec is None:
            assert self._live is not None
            return self._live.at(micros)
        return listed_pools(columns[spec.column], spec, self.articles, self._missing)

    def _payoff_columns(self, part: TablePart) -> ExpressionColumns:
        default = self._mapping.missing_payoff
        values: dict[str, Any] = {}
        words: dict[str, tuple[Any, list[str | None]]] = {}
        for name in self._payoff.numbers:
            found = numbers(part.columns[name], self._missing)
            if default is not None and np.isnan(found).any():
                codes, texts_ = texts(part.columns[name], self._missing)
                absent = np.array([text is None for text in texts_])[codes]
                found = np.where(absent, default, found)
            values[name] = found
        for name in self._payoff.texts:
            codes, texts_ = texts(part.columns[name], self._missing)
            words[name] = (
                codes,
                ["" if text is None and default is not None else text for text in texts_],
            )
        return ExpressionColumns(values, words)

    def _propensity(self, part: TablePart, pools: RowPools, good: Any) -> tuple[Any, Any]:
        if self._mapping.propensity is None:
            return None, None
        column = part.columns[self._mapping.propensity].take(pa.array(good))
        found = texts(column, self._missing)
        blank = np.array([value is None for value in found.values])[found.codes]
        with np.errstate(divide="ignore"):
            uniform = 1.0 / pools.table.sizes[pools.pool[good]]
        return np.where(blank, uniform, numbers(column, self._missing)), blank

    def _note(self, mask: Mask, remark: str, path: Path, part: TablePart, rows: Any) -> None:
        if mask.any():
            first = int(rows[int(mask.argmax())])
            self._faults.note(
                remark, str(path), int(part.lines[first]), part.text(first), int(mask.sum())
            )


def in_columns(reason: str, *columns: str) -> str:
    """The reason with the columns that it is about.

    >>> in_columns("the timestamp is missing", "ts")
    "column 'ts': the timestamp is missing"
    """
    names = ", ".join(map(repr, columns))
    return f"column{'s' * (len(columns) > 1)} {names}: {reason}" if columns else reason


def _unusable(row: ExpressionColumns, name: str) -> Any:
    """(n,) where a column of the payoff has no value that the expression can take."""
    unusable: Any = np.bool_(False)
    if name in row.numbers:
        unusable = ~np.isfinite(row.numbers[name])
    if name in row.texts:
        codes, meaning = row.texts[name]
        unusable = unusable | np.array([text is None for text in meaning])[codes]
    return unusable
