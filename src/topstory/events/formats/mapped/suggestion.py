"""A commented mapping, suggested from the columns of an export and its first rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from topstory.events.formats.faults import Faults
from topstory.events.formats.mapped.articles import read_table
from topstory.events.formats.mapped.expression import as_expression
from topstory.events.formats.mapped.fields import is_truths, numbers, split_list, texts
from topstory.events.formats.mapped.mapping import MISSING
from topstory.events.formats.mapped.moments import is_moment, usual_pattern
from topstory.events.formats.mapped.reader import FORMATS
from topstory.events.formats.mapped.roles import MAX_CATEGORIES, ColumnFacts, Roles, find_roles
from topstory.events.formats.tabular.csv_tables import csv_tables
from topstory.events.formats.tabular.encodings import likely_encoding
from topstory.events.formats.tabular.json_tables import json_tables
from topstory.events.formats.tabular.parquet_tables import parquet_tables

ROWS = 2_000  # that are looked at
TEXT_WORDS = 3  # words of a usual value, from which on it is text
SEPARATORS = "|;,"
_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?")  # 1.234,50


def suggest_mapping(format: str, path: Path, articles: Path | None = None) -> str:
    """A mapping as TOML, with a comment for every guess; somebody should read it before use."""
    if format not in FORMATS:
        raise ValueError(f"a mapping is for {', '.join(FORMATS)}, not for {format}")
    encoding = likely_encoding(path) if format == "csv" else None
    columns = _first_rows(format, path, encoding)
    facts = [column_facts(name, column) for name, column in columns.items()]
    listed, ids, other = None, list[str](), None
    if articles is not None:
        if articles.is_file() and ".csv" in articles.suffixes:
            other = likely_encoding(articles)
        table = read_table(articles, Faults(), other)
        listed = [column_facts(n, table.column(n).combine_chunks()) for n in table.column_names]
        _, values = texts(table.column(_key(listed).name).combine_chunks(), MISSING)
        ids = [value for value in values if value is not None]
    roles = find_roles(facts, columns, ids)
    found = _Files(format, path, encoding, articles, other)
    return "\n".join(_lines(found, facts, roles, listed)) + "\n"


class _Files(NamedTuple):
    """The files that a mapping is for; an encoding is None if it is UTF-8."""

    format: str
    path: Path
    encoding: str | None
    articles: Path | None
    articles_encoding: str | None


def column_facts(name: str, column: Any) -> ColumnFacts:
    """What a column is, as far as its values tell.

    >>> column_facts("is_new", pa.array(["yes", "no", "", "yes"]))
    ColumnFacts(name='is_new', kind='boolean', distinct=2, missing=0.25, \
examples=('yes', 'no'), separator='|', decimal='.', format='auto')
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
    counts = len(words) == 1 and words <= {"0", "1"}  # and others may follow
    if pa.types.is_boolean(kind) or (is_truths(words) and not counts):
        return facts._replace(kind="boolean")
    if sum(map(is_moment, known[:50])) > 0.9 * len(known[:50]):
        return facts._replace(kind="date")
    found = numbers(pa.array(known))
    if (found == found).mean() > 0.9:
        return facts._replace(kind="number")
    pattern = usual_pattern(known[:50])
    if pattern is not None:
        return facts._replace(kind="date", format=pattern)
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
        members = {word for part in several for word in part}
        again = len(members) < len(set(map(tuple, several))) / 2  # as those of texts do not come
        if several and len(several) > len(values) / 3 and (single or again):
            return separator
    return None


def _first_rows(format: str, path: Path, encoding: str | None) -> dict[str, Any]:
    if format == "csv":
        tables: Iterator[Any] = csv_tables(path, Faults(), lambda _: None, lambda _: True, encoding)
    elif format == "jsonl":
        tables = json_tables(path, Faults(), lambda _: None, lambda _: True)
    else:
        tables = parquet_tables(path, lambda _: None, lambda _: True, lambda _: None)
    for part in islice(tables, 1):
        return {name: column.slice(0, ROWS) for name, column in part.columns.items()}
    raise ValueError(f"{path}: there are no rows in it to make a mapping from")


def _lines(
    files: _Files,
    facts: list[ColumnFacts],
    found: Roles,
    listed: list[ColumnFacts] | None,
) -> Iterator[str]:
    roles, name = found.by_part, files.path.name
    yield f"# A mapping for {name}, guessed from its first rows. Check every line, then run:"
    yield f"#   topstory import {files.format} {files.path} logs/ --map THIS_FILE"
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
        elif role == "timestamp" and each.format != "auto":
            yield f"{role} = {_time(each)}  # when{_examples(each)}"
        elif role == "candidates" and each.separator != "|":
            value = f'{{ column = {_text(each.name)}, separator = "{each.separator}" }}'
            yield f"{role} = {value}  # {about}"
        else:
            value = as_expression(each.name) if role == "payoff" else each.name
            yield f"{role} = {_text(value)}  # {about}{_examples(each)}"
    paid = roles.get("payoff")
    if paid is not None and paid.missing > 0:
        yield f"missing_payoff = 0  # {paid.missing:.0%} of {paid.name} is missing: no payoff?"
    if _has_commas(facts):
        yield 'decimal = ","  # 1.234,50 is read as 1234.5'
    if files.encoding is not None:
        yield f'encoding = "{files.encoding}"  # it is not UTF-8; look whether letters are right'
    yield ""
    yield "[user]  # fields of the profile: category, categories, number, boolean, date or text"
    taken = {each.name for each in roles.values()}
    rest = [each for each in facts if each.name not in taken]
    for each in rest:
        yield from _field(each, after_the_fact=each.name in found.outcomes)
    yield ""
    yield from _articles(files, listed, _has_commas(facts))


def _has_commas(facts: Sequence[ColumnFacts]) -> bool:
    return any(each.decimal == "," for each in facts)


def _key(listed: Sequence[ColumnFacts]) -> ColumnFacts:
    """The column of an articles file that has the ids."""
    called = r"(^|[_.])(id|nr)$|^(article|item|product|artikel|produkt)([_.-]?(id|nr))?$"
    return next((each for each in listed if re.search(called, each.name, re.I)), listed[0])


def _articles(files: _Files, listed: list[ColumnFacts] | None, commas: bool) -> Iterator[str]:
    path = files.articles
    if path is None or listed is None:
        yield "# [articles]"
        yield '# file = "articles.csv"  # beside this mapping; .csv, .jsonl or .parquet'
        yield '# id = "article_id"'
        yield '# from = "published_at"  # where candidates are not listed: the articles live then'
        yield '# until = "withdrawn_at"'
        yield ""
        yield "# [article]  # fields of an article's profile"
        return
    key = _key(listed)
    yield "[articles]"
    yield f"file = {_text(str(path))}  # from the folder of this mapping on"
    yield f"id = {_text(key.name)}"
    dates = [each for each in listed if each.kind == "date"]
    mark = "# "  # only where candidates are not listed
    if _has_commas(listed) != commas and any(map(_is_fraction, listed)):
        yield f'decimal = "{"," if _has_commas(listed) else "."}"  # other than in the events'
    if files.articles_encoding != files.encoding:
        yield f'encoding = "{files.articles_encoding or "utf-8"}"  # other than in the events'
    if dates:
        yield f"{mark}from = {_time(dates[0])}  # instead of candidates: what was live then"
    if len(dates) > 1:
        yield f"{mark}until = {_time(dates[1])}"
    yield ""
    yield "[article]"
    for each in listed:
        if each is not key:
            yield from _field(each, ended=each in dates[1:2])


def _is_fraction(each: ColumnFacts) -> bool:
    """Whether a number is written so that it shows which mark it has before its decimals."""
    return each.kind == "number" and (each.decimal == "," or any("." in e for e in each.examples))


def _field(each: ColumnFacts, after_the_fact: bool = False, ended: bool = False) -> Iterator[str]:
    why = ""
    if after_the_fact:
        why = "known only after the fact? then it must not be a feature"
    elif ended:
        why = "known when an article comes out? if not, it must not be a feature"
    elif not each.examples:
        why = "no value in the first rows"
    elif each.distinct > MAX_CATEGORIES and (
        each.kind == "category" or re.search(r"(^|[_.])id$", each.name, re.I)
    ):
        why = f"{each.distinct} different values in the first rows: an id?"
    value = f'"{each.kind}"'
    if each.kind == "categories" and each.separator != "|":
        value = f'{{ kind = "categories", separator = "{each.separator}" }}'
    if each.kind == "date" and each.format != "auto":
        value = f'{{ kind = "date", format = {_text(each.format)} }}'
    comment = why or f"{_examples(each)[2:]}"
    lacking = f"; {each.missing:.0%} missing" if each.missing and not why else ""
    name = each.name if re.fullmatch(r"[A-Za-z0-9_-]+", each.name) else _text(each.name)
    yield f"{'# ' if why else ''}{name} = {value}  # {comment}{lacking}"


def _time(each: ColumnFacts) -> str:
    """A column of times, with its format if that must be said."""
    if each.format == "auto":
        return _text(each.name)
    return f"{{ column = {_text(each.name)}, format = {_text(each.format)} }}"


def _examples(each: ColumnFacts) -> str:
    shown = ", ".join(value if len(value) < 30 else value[:29] + "…" for value in each.examples)
    plain = "".join(c if c.isprintable() else " " for c in shown)
    return f"; such as {plain}" if plain else ""


def _text(value: str) -> str:
    """A TOML string."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
