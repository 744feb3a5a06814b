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
from topstory.events.formats.mapped.candidates import LivePools, Pools, listed_pools
from topstory.events.formats.mapped.expression import Row
from topstory.events.formats.mapped.fields import (
    clean_texts,
    numbers,
    pointed,
    texts,
    typed_field,
)
from topstory.events.formats.mapped.mapping import ColumnMapping
from topstory.events.formats.mapped.moments import column_moments
from topstory.events.formats.mapped.people import People
from topstory.events.formats.pipeline.validation import (
    NOT_IN_POOL,
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
NO_SHOWN = "the shown article is missing"
NO_TIME = "the timestamp is missing"
NOT_A_TIME = "the timestamp cannot be read as a time"
LISTED_TWICE = "the candidates list an article twice: it counts once"
NO_PAYOFF = (
    "the payoff is missing, or not a number: where that means nothing was paid, set "
    "missing_payoff = 0"
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
        self._numeric = frozenset(
            [
                *self._payoff.numbers,
                *([] if mapping.propensity is None else [mapping.propensity]),
                *(field.column for field in mapping.user.values() if field.kind == "number"),
            ]
        )
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
            remark = f"user field {name!r} is not a {field.kind} here: taken as missing"
            self._note(unreadable, remark, path, part, rows)
        visitor = None
        if mapping.visitor is not None:
            visitor = clean_texts(part.columns[mapping.visitor].take(wanted), self._missing)
        return self.people.rows(visitor, pa.table(columns))

    def _rows(self, path: Path, part: TablePart) -> ParsedRows:
        mapping, columns, lines = self._mapping, part.columns, part.lines
        rejected = list(part.rejected)
        bad = np.zeros(len(lines), bool)

        def reject(mask: Mask, reason: str) -> None:
            rejected.extend(rejected_rows(mask & ~bad, reason, lines, part.text))
            bad[mask] = True

        micros = None
        if mapping.timestamp is not None:
            column = columns[mapping.timestamp.column]
            micros = column_moments(column, mapping.timestamp.format)
            unknown = micros == INVALID_TIME
            if unknown.any():
                there = np.zeros(len(lines), bool)
                some = np.flatnonzero(unknown)
                codes, values = texts(column.take(pa.array(some)), self._missing)
                there[some] = np.array([value is not None for value in values])[codes]
                reject(unknown & ~there, NO_TIME)
                reject(unknown & there, NOT_A_TIME)
        shown = texts(columns[mapping.shown], self._missing)
        reject(np.array([value is None for value in shown.values])[shown.codes], NO_SHOWN)
        pools = self._pools(columns, micros)
        empty = (pools.table.sizes == 0)[pools.pool]
        reject(empty, NO_CANDIDATES if mapping.candidates is not None else NONE_LIVE)
        index = np.array([self.articles.known(value) for value in shown.values], np.int32)
        article = index[shown.codes]
        table = self.articles.table()
        position = PositionLookup(pools.table, len(table.ids))(
            pools.pool.astype(np.int32), np.maximum(article, 0)
        )
        position = np.where(article < 0, NOT_IN_POOL, position).astype(np.int32)
        if self._live is not None:
            reject(position < 0, NOT_LIVE)
        payoff = self._paid(part)
        reject(~np.isfinite(payoff), NO_PAYOFF)
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
        )

    def _pools(self, columns: dict[str, Any], micros: Any) -> Pools:
        spec = self._mapping.candidates
        if spec is None:
            assert self._live is not None
            return self._live.at(micros)
        return listed_pools(columns[spec.column], spec, self.articles, self._missing)

    def _paid(self, part: TablePart) -> Any:
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
        return self._payoff.evaluate(Row(values, words), len(part.lines))

    def _propensity(self, part: TablePart, pools: Pools, good: Any) -> tuple[Any, Any]:
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
