"""Which column of an export plays which part: by what it is called, and by what it holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topstory.events.formats.mapped.fields import numbers, pointed, split_list, texts
from topstory.events.formats.mapped.mapping import MISSING

# What columns are usually called, in a few languages; the first that fits. A column in an object of
# JSON lines goes by its last name, or by all of it.
_NAMES = {
    "timestamp": r"time(stamp)?$|_time$|_at$|^ts$|^date(time)?$|^when$|^zeit|^datum|heure|fecha",
    "event": r"^(event|impression|request|exposure)_?id$|^uuid$",
    "visitor": r"^(user|visitor|customer|client|session|account|cookie|device|reader)([_.]?id)?$|"
    r"^(kunde|besucher|nutzer|leser|lecteur|visiteur|client|cliente|lector|usuario|klant)"
    r"([_.]?(id|nr))?$",
    "candidates": r"candidate|^pool|options?$|offered|slate|eligible|angebot|kandidat",
    "shown": r"shown|displayed|served|recommended|gezeigt|affich|"
    r"^(article|item|content|story|offer|product|produkt|artikel)([_.]?(id|nr))?$",
    "payoff": r"^(is_)?cli[ck]k?(s|ed|ked)?$|^klicks?$|reward|payoff|conver(t|sion)|purchase|"
    r"revenue|outcome|label|umsatz|kauf|achat|compra",
    "propensity": r"propensit|prob(ability)?$|pscore|^p$|wahrscheinlich|probabilit",
}
_OUTCOMES = r"cli[ck]k|dwell|read|convert|purchase|revenue|scroll|umsatz|kauf|bought|sold|order"
MOST = 0.95  # of the rows, in which something must hold
SURE_ROWS = 20  # so many are needed to tell a part by what a column holds
MAX_CATEGORIES = 200  # distinct values of a category among the first rows; more are ids


class ColumnFacts(NamedTuple):
    """What the first rows tell of a column."""

    name: str
    kind: str  # as a field of a profile
    distinct: int
    missing: float  # share
    examples: tuple[str, ...]
    separator: str = "|"
    decimal: str = "."
    format: str = "auto"  # of a date


class Roles(NamedTuple):
    """The columns that play a part, and those that are known only after the fact."""

    by_part: dict[str, ColumnFacts]
    outcomes: frozenset[str]


def find_roles(
    facts: Sequence[ColumnFacts], columns: Mapping[str, Any], articles: Collection[str] = ()
) -> Roles:
    """The part of each column that has one; `articles`: the ids of the articles file."""
    free = {each.name: each for each in facts}
    found: dict[str, ColumnFacts] = {}

    def take(role: str, each: ColumnFacts | None) -> None:
        if each is not None and role not in found:
            found[role] = free.pop(each.name)

    for role in ("timestamp", "event", "visitor", "candidates", "shown"):
        take(role, _named(role, free.values()))
    if "shown" not in found or "candidates" not in found:
        known = {name: [found[name]] for name in ("shown", "candidates") if name in found}
        lists = known.get("candidates", [e for e in free.values() if e.kind == "categories"])
        pair = _listed_in(lists, known.get("shown", list(free.values())), columns)
        if pair is not None:
            take("candidates", pair[0])
            take("shown", pair[1])
    take("shown", _among(free.values(), columns, articles))
    take("event", next((each for each in free.values() if _is_key(each, columns)), None))
    take("visitor", next((e for e in free.values() if _is_visitor(e, free, columns)), None))
    take("payoff", _payoff(free.values(), columns))
    take("propensity", _named("propensity", free.values(), lambda e: _is_share(e, columns)))
    take("timestamp", next((each for each in free.values() if each.kind == "date"), None))
    return Roles(found, _outcomes(found.get("payoff"), free.values(), columns))


def is_called(role: str, name: str) -> bool:
    """Whether a column of that name usually plays this part."""
    plain = re.sub(r"[\s-]+", "_", name)
    return any(re.search(_NAMES[role], each, re.I) for each in (plain, plain.split(".")[-1]))


_FITS: dict[str, Callable[[ColumnFacts], bool]] = {
    "timestamp": lambda each: each.kind == "date",
    "candidates": lambda each: each.kind == "categories",
    "shown": lambda each: each.kind in ("category", "number"),
    "visitor": lambda each: each.distinct > 1,
}


def _named(
    role: str,
    facts: Collection[ColumnFacts],
    fits: Callable[[ColumnFacts], bool] | None = None,
) -> ColumnFacts | None:
    fit = fits or _FITS.get(role, lambda _: True)
    return next((each for each in facts if is_called(role, each.name) and fit(each)), None)


def _payoff(facts: Collection[ColumnFacts], columns: Mapping[str, Any]) -> ColumnFacts | None:
    """A click, if there is one; else what is 0, or missing, most of the time."""
    called = [each for each in facts if is_called("payoff", each.name)]
    clicks = [each for each in called if each.kind == "boolean"]
    rare = [
        each
        for each in called
        if each.kind == "number" and (~_paid(each, columns[each.name])).mean() > 0.5
    ]
    others = [each for each in called if each.kind == "number" and each not in rare]
    at_end = [each for each in others if not re.search(r"user|customer|profile", each.name, re.I)]
    return next(iter((*clicks, *rare, *at_end)), None)


def _outcomes(
    payoff: ColumnFacts | None, facts: Collection[ColumnFacts], columns: Mapping[str, Any]
) -> frozenset[str]:
    """Columns that are called like an outcome, or have a value only where something was paid."""
    paid = None if payoff is None else _paid(payoff, columns[payoff.name])
    found = set()
    for each in facts:
        if re.search(_OUTCOMES, each.name.split(".")[-1], re.I) and not _is_of_user(each):
            found.add(each.name)
        elif paid is not None and each.kind in ("number", "boolean"):
            mine = _paid(each, columns[each.name])
            if mine.sum() >= SURE_ROWS and paid.mean() < 0.5 and paid[mine].mean() > MOST:
                found.add(each.name)
    return frozenset(found)


def _is_of_user(each: ColumnFacts) -> bool:
    return bool(re.search(r"(user|customer|visitor|profile)[._]", each.name, re.I))


def _paid(each: ColumnFacts, column: Any) -> npt.NDArray[np.bool_]:
    """(n,) where a column is neither missing nor 0."""
    found = numbers(pointed(column, each.decimal), MISSING)
    return np.asarray((found == found) & (found != 0))


def _is_share(each: ColumnFacts, columns: Mapping[str, Any]) -> bool:
    found = numbers(pointed(columns[each.name], each.decimal), MISSING)
    known = found[found == found]
    return each.kind == "number" and bool(len(known) and (known > 0).all() and (known <= 1).all())


def _is_key(each: ColumnFacts, columns: Mapping[str, Any]) -> bool:
    """Whether it identifies the event: it is called an id, and hardly a value comes twice."""
    rows = len(columns[each.name])
    called = re.search(r"(^|[_.])(id|nr|uuid)$|^(id|uuid)[_.]", each.name, re.I)
    return bool(called and rows >= SURE_ROWS and each.distinct > MOST * rows)


def _is_visitor(
    each: ColumnFacts, facts: Mapping[str, ColumnFacts], columns: Mapping[str, Any]
) -> bool:
    """Whether it says who came: an id that comes again, and then with the same profile."""
    if each.kind not in ("category", "number") or not (
        MAX_CATEGORIES < each.distinct <= MOST * len(columns[each.name])
    ):
        return False
    codes, values = texts(columns[each.name], MISSING)
    last: dict[int, int] = {}  # the row in which each came last
    pairs = []
    for row, code in enumerate(codes.tolist()):
        if values[code] is not None:
            if code in last:
                pairs.append((last[code], row))
            last[code] = row
    if len(pairs) < SURE_ROWS:
        return False
    before, after = np.array(pairs).T
    for other in facts.values():
        if other.kind in ("category", "number") and 1 < other.distinct <= MAX_CATEGORIES:
            mine, known = texts(columns[other.name], MISSING)
            there = np.array([value is not None for value in known])[mine]
            share = np.bincount(mine[there]).max() / there.sum()  # of its most frequent value
            both = there[before] & there[after]
            same = mine[before][both] == mine[after][both]
            if share < 0.8 and len(same) >= SURE_ROWS and same.mean() > MOST:
                return True
    return False


def _listed_in(
    lists: Sequence[ColumnFacts], others: Sequence[ColumnFacts], columns: Mapping[str, Any]
) -> tuple[ColumnFacts, ColumnFacts] | None:
    """A column of lists, and one whose value is in the list in nearly all rows."""
    for each in lists:
        members = _members(each, columns[each.name])
        for other in others:
            if other.name == each.name or other.kind not in ("category", "number"):
                continue
            codes, values = texts(columns[other.name], MISSING)
            pairs = [
                values[code] in row
                for code, row in zip(codes.tolist(), members, strict=True)
                if values[code] is not None and row
            ]
            if len(pairs) >= SURE_ROWS and sum(pairs) > MOST * len(pairs) and other.distinct > 1:
                return each, other
    return None


def _members(each: ColumnFacts, column: Any) -> list[set[str]]:
    """(n,) the members of each row's list."""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return [{str(member) for member in row or ()} for row in column.to_pylist()]
    codes, values = texts(column, MISSING)
    rows = [set(split_list(value, each.separator, MISSING) or ()) for value in values]
    return [rows[code] for code in codes.tolist()]


def _among(
    facts: Collection[ColumnFacts], columns: Mapping[str, Any], articles: Collection[str]
) -> ColumnFacts | None:
    """A column whose values are ids of the articles file."""
    known = set(articles)
    for each in facts:
        if each.kind not in ("category", "number") or each.distinct < 2 or not known:
            continue
        codes, values = texts(columns[each.name], MISSING)
        given = [values[code] for code in codes.tolist() if values[code] is not None]
        if len(given) >= SURE_ROWS and sum(v in known for v in given) > MOST * len(given):
            return each
    return None
