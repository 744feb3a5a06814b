"""A commented mapping, suggested from the columns of an export and its first rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from topstory.events.formats.faults import Faults
from topstory.events.formats.mapped.articles import read_table
from topstory.events.formats.mapped.fields import numbers, split_list, texts
from topstory.events.formats.mapped.mapping import MISSING
from topstory.events.formats.mapped.moments import is_moment
from topstory.events.formats.mapped.reader import FORMATS
from topstory.events.formats.tabular.csv_tables import csv_tables
from topstory.events.formats.tabular.json_tables import json_tables
from topstory.events.formats.tabular.parquet_tables import parquet_tables

ROWS = 2_000  # that are looked at
MAX_CATEGORIES = 200  # distinct values of a category among them
TEXT_WORDS = 3  # words of a usual value, from which on it is text
SEPARATORS = "|;,"
_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?")  # 1.234,50

_ROLES = {  # what columns are usually called; the first that fits
    "timestamp": r"time(stamp)?$|_time$|_at$|^ts$|^date(time)?$|^when$",
    "event": r"^(event|impression|request|exposure)_?id$|^uuid$",
    "visitor": r"^(user|visitor|customer|client|session|account|cookie|device)([_.]?id)?$",
    "candidates": r"candidate|^pool|options?$|offered|slate|eligible",
    "shown": r"shown|displayed|served|recommended|^(article|item|content|story|offer)(_?id)?$",
    "payoff": r"^(is_)?click(s|ed)?$|reward|payoff|conver(t|sion)|purchase|revenue|outcome|label",
    "propensity": r"propensit|prob(ability)?$|pscore",
}


class ColumnFacts(NamedTuple):
    """What the first rows tell of a column."""

    name: str
    kind: str  # as a field of a profile
    distinct: int
    missing: float  # share
    examples: tuple[str, ...]
    separator: str = "|"
    decimal: str = "."


def suggest_mapping(format: str, path: Path, articles: Path | None = None) -> str:
    """A mapping as TOML, with a comment for every guess; somebody should read it before use."""
    if format not in FORMATS:
        raise ValueError(f"a mapping is for {', '.join(FORMATS)}, not for {format}")
    columns = _first_rows(format, path)
    facts = [column_facts(name, column) for name, column in columns.items()]
    listed = None
    if articles is not None:
        table = read_table(articles, Faults())
        listed = [column_facts(n, table.column(n).combine_chunks()) for n in table.column_names]
    return "\n".join(_lines(format, path, facts, articles, listed)) + "\n"


def column_facts(name: str, column: Any) -> ColumnFacts:
    """What a column is, as far as its values tell.

    >>> column_facts("is_new", pa.array(["yes", "no", "", "yes"]))
    ColumnFacts(name='is_new', kind='boolean', distinct=2, missing=0.25, \
examples=('yes', 'no'), separator='|', decimal='.')
    """
    rows = max(len(column), 1)
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        first = [str(each) for each in column.slice(0, 2).to_pylist()]
        return ColumnFacts(name, "categories", 0, column.null_count / rows, tuple(first))
    codes, values = texts(column, MISSING)
    present = [values[code] for code in codes.tolist()]
    given = [value for value in present if value is not None]
    known = list(dict.fromkeys(given))
    lacking = 1 - len(given) / rows
    facts = ColumnFacts(name, "category", len(known), lacking, tuple(known[:3]))
    if not given:
        return facts
    words = {value.lower() for value in known}
    if pa.types.is_boolean(kind) or words <= {"true", "false", "yes", "no", "t", "f", "y", "n"}:
        return facts._replace(kind="boolean")
    if words <= {"0", "1"}:
        return facts._replace(kind="boolean")
    if sum(map(is_moment, known[:50])) > 0.9 * len(known[:50]):
        return facts._replace(kind="date")
    found = numbers(pa.array(known))
    if (found == found).mean() > 0.9:
        return facts._replace(kind="number")
    if sum(bool(_COMMA.fullmatch(value)) for value in known) > 0.9 * len(known):
        return facts._replace(kind="number", decimal=",")
    separator = _separator(given)
    if separator:
        return facts._replace(kind="categories", separator=separator)
    usual = sorted(len(value.split()) for value in given)[len(given) // 2]
    if usual >= TEXT_WORDS and len(known) > len(given) / 2:
        return facts._replace(kind="text")
    return facts


def _separator(values: Sequence[str]) -> str | None:
    """What separates a list in most of the texts; None if they are no lists."""
    if sum(value.startswith("[") and value.endswith("]") for value in values) > len(values) / 2:
        return "|"
    for separator in SEPARATORS:
        parts = [split_list(value, separator, ()) or [] for value in values]
        several = [part for part in parts if len(part) > 1]
        single = all(len(word.split()) == 1 for part in several for word in part)
        if several and len(several) > len(values) / 3 and single:
            return separator
    return None


def _first_rows(format: str, path: Path) -> dict[str, Any]:
    if format == "csv":
        tables: Iterator[Any] = csv_tables(path, Faults(), lambda _: None, lambda _: True)
    elif format == "jsonl":
        tables = json_tables(path, Faults(), lambda _: None, lambda _: True)
    else:
        tables = parquet_tables(path, lambda _: None, lambda _: True, lambda _: None)
    for part in islice(tables, 1):
        return {name: column.slice(0, ROWS) for name, column in part.columns.items()}
    raise ValueError(f"{path}: there are no rows in it to make a mapping from")


def _roles(facts: Sequence[ColumnFacts]) -> dict[str, ColumnFacts]:
    """Which column plays which part: by its name, and by what it holds."""
    free = {each.name: each for each in facts}
    fits: dict[str, Callable[[ColumnFacts], bool]] = {
        "timestamp": lambda each: each.kind == "date",
        "candidates": lambda each: each.kind == "categories",
        "payoff": lambda each: each.kind in ("boolean", "number"),
        "propensity": lambda each: each.kind == "number",
    }
    roles = {}
    for role, pattern in _ROLES.items():
        for each in list(free.values()):
            fit = fits.get(role)
            if re.search(pattern, each.name, re.I) and (fit is None or fit(each)):
                roles[role] = free.pop(each.name)
                break
    if "timestamp" not in roles:
        dated = [each for each in free.values() if each.kind == "date"]
        if dated:
            roles["timestamp"] = free.pop(dated[0].name)
    return roles


def _lines(
    format: str,
    path: Path,
    facts: list[ColumnFacts],
    articles: Path | None,
    listed: list[ColumnFacts] | None,
) -> Iterator[str]:
    roles = _roles(facts)
    yield f"# A mapping for {path.name}, guessed from its first rows. Check every line, then run:"
    yield f"#   topstory import {format} {path} logs/ --map THIS_FILE"
    yield ""
    for role, about in (
        ("timestamp", 'when; { column = "…", format = "ms" } if it is not told right'),
        ("shown", "the id of the article that was shown"),
        ("payoff", "what it paid: a column, or such as dwell_seconds > 30, clicked + 3 * paid"),
        ("candidates", "what could have been shown; without it, see [articles] from"),
        ("propensity", "optional: the probability with which it was shown"),
        ("visitor", "optional: who came"),
        ("event", "optional: the id of the event; repeats are dropped"),
    ):
        each = roles.get(role)
        if each is None:
            yield f'# {role} = "…"  # {about}'
        elif role == "candidates" and each.separator != "|":
            value = f'{{ column = {_text(each.name)}, separator = "{each.separator}" }}'
            yield f"{role} = {value}  # {about}"
        else:
            yield f"{role} = {_text(each.name)}  # {about}{_examples(each)}"
    paid = roles.get("payoff")
    if paid is not None and paid.missing > 0:
        yield f"missing_payoff = 0  # {paid.missing:.0%} of {paid.name} is missing: no payoff?"
    if any(each.decimal == "," for each in (*facts, *(listed or ()))):
        yield 'decimal = ","  # 1.234,50 is read as 1234.5'
    yield ""
    yield "[user]  # fields of the profile: category, categories, number, boolean, date or text"
    taken = {each.name for each in roles.values()}
    rest = [each for each in facts if each.name not in taken]
    for each in rest:
        yield from _field(each, after_the_fact=_is_outcome(each.name))
    yield ""
    yield from _articles(articles, listed)


def _articles(path: Path | None, listed: list[ColumnFacts] | None) -> Iterator[str]:
    if path is None or listed is None:
        yield "# [articles]"
        yield '# file = "articles.csv"  # beside this mapping; .csv, .jsonl or .parquet'
        yield '# id = "article_id"'
        yield '# from = "published_at"  # where candidates are not listed: the articles live then'
        yield '# until = "withdrawn_at"'
        yield ""
        yield "# [article]  # fields of an article's profile"
        return
    ids = [each for each in listed if re.search(r"(^|_)id$|^article$|^item$", each.name, re.I)]
    key = ids[0] if ids else listed[0]
    yield "[articles]"
    yield f"file = {_text(str(path))}  # from the folder of this mapping on"
    yield f"id = {_text(key.name)}"
    dates = [each for each in listed if each.kind == "date"]
    mark = "# "  # only where candidates are not listed
    if dates:
        yield f"{mark}from = {_text(dates[0].name)}  # instead of candidates: what was live then"
    if len(dates) > 1:
        yield f"{mark}until = {_text(dates[1].name)}"
    yield ""
    yield "[article]"
    for each in listed:
        if each is not key:
            yield from _field(each)


def _is_outcome(name: str) -> bool:
    """Whether a column is known only after the article was shown."""
    return bool(re.search(r"click|dwell|read|convert|purchase|revenue|scroll", name, re.I))


def _field(each: ColumnFacts, after_the_fact: bool = False) -> Iterator[str]:
    why = ""
    if after_the_fact:
        why = "known only after the fact: it must not be a feature"
    elif not each.examples:
        why = "no value in the first rows"
    elif each.distinct > MAX_CATEGORIES and (
        each.kind == "category" or re.search(r"(^|[_.])id$", each.name, re.I)
    ):
        why = f"{each.distinct} different values in the first rows: an id?"
    value = f'"{each.kind}"'
    if each.kind == "categories" and each.separator != "|":
        value = f'{{ kind = "categories", separator = "{each.separator}" }}'
    comment = why or f"{_examples(each)[2:]}"
    lacking = f"; {each.missing:.0%} missing" if each.missing and not why else ""
    name = each.name if re.fullmatch(r"[A-Za-z0-9_-]+", each.name) else _text(each.name)
    yield f"{'# ' if why else ''}{name} = {value}  # {comment}{lacking}"


def _examples(each: ColumnFacts) -> str:
    shown = ", ".join(value if len(value) < 30 else value[:29] + "…" for value in each.examples)
    plain = "".join(c if c.isprintable() else " " for c in shown)
    return f"; such as {plain}" if plain else ""


def _text(value: str) -> str:
    """A TOML string."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
