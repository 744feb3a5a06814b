"""The mapping: which columns of an export are the time, the shown article, the payoff and so on."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import msgspec

from topstory.events.columns.profiles import RESERVED_COLUMNS, TYPES, Kind
from topstory.events.formats.mapped.expression import Expression, parse
from topstory.events.formats.mapped.moments import check_format
from topstory.events.formats.tabular.encodings import check_encoding

MISSING = ("", "NULL", "null", "None", "none", "NA", "N/A", "n/a", "NaN", "nan", "\\N", "-")
KINDS = ", ".join(TYPES)


class MappedField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A field of a profile: its column, if that is not its name, and its kind."""

    kind: Kind
    column: str = ""
    separator: str = "|"  # between categories in one text
    format: str = "auto"  # of a date


class TimeColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of times: auto, iso, s, ms, us, ns, or a pattern such as %d/%m/%Y %H:%M."""

    column: str
    format: str = "auto"


class ListColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of lists, or of texts with a separator."""

    column: str
    separator: str = "|"


class ArticlesFile(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}
):
    """The file of articles, and which of its columns say when an article could be shown."""

    file: str
    id: str = "article"
    from_: TimeColumn | None = None
    until: TimeColumn | None = None
    live_hours: float | None = None  # how long an article without `until` is live
    decimal: Literal[".", ","] | None = None  # of its numbers; None: as in the events
    encoding: str | None = None  # of its text; None: as in the events


class ColumnMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All of a mapping.

    >>> mapping = as_mapping({"shown": "item", "payoff": "clicked", "candidates": "offered",
    ...     "user": {"country": "category", "age": {"column": "years", "kind": "number"}}})
    >>> sorted(mapping.columns())
    ['clicked', 'country', 'item', 'offered', 'years']
    """

    shown: str
    payoff: str
    timestamp: TimeColumn | None = None
    candidates: ListColumn | None = None  # None: the articles that were live, by the articles file
    propensity: str | None = None
    visitor: str | None = None
    event: str | None = None
    missing: tuple[str, ...] = MISSING
    missing_payoff: float | None = None  # what a column of the payoff without a value counts as
    decimal: Literal[".", ","] = "."  # of numbers; with a comma, points stand between thousands
    encoding: str | None = None  # of a CSV file's text; None: UTF-8
    sort: bool = True  # by time, where events are not in order
    user: dict[str, MappedField] = {}
    articles: ArticlesFile | None = None
    article: dict[str, MappedField] = {}

    def columns(self) -> Iterator[str]:
        """All columns of the events that are read."""
        yield from dict.fromkeys(
            [
                self.shown,
                *self.expression().columns,
                *(each.column for each in (self.timestamp, self.candidates) if each is not None),
                *(name for name in (self.propensity, self.visitor, self.event) if name is not None),
                *(field.column for field in self.user.values()),
            ]
        )

    def expression(self) -> Expression:
        """The payoff, parsed."""
        return parse(self.payoff)


def load_mapping(
    given: str | PathLike[str] | Mapping[str, Any] | None, options: Mapping[str, Any]
) -> tuple[ColumnMapping, Path]:
    """A mapping from a TOML file or a dict, with single settings over it, and its folder.

    Settings are those of the command line: `shown=item`, `user.country=category`,
    `timestamp.format=ms`. A file that the mapping names lies beside the mapping.
    """
    name, folder, tree = "the mapping", Path(), dict[str, Any]()
    if isinstance(given, Mapping):
        tree = _copied(given)
    elif given is not None:
        path = Path(given)
        name, folder = str(path), path.parent
        try:
            tree = tomllib.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{path}: there is no such mapping; `topstory import csv FILE --suggest` writes one"
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: not a TOML file: {error}") from None
    for key, value in options.items():
        _set(tree, key, value)
    if "articles" in options or "articles.file" in options:
        folder = Path()  # a path on the command line starts where one is
    return as_mapping(tree, name), folder


def as_mapping(tree: Mapping[str, Any], name: str = "the mapping") -> ColumnMapping:
    """A mapping from nested dicts, checked; the error names the key."""
    given = _copied(tree)
    known = list(ColumnMapping.__struct_fields__)
    for key in given:
        if key not in known:
            like = get_close_matches(key, known, 1)
            hint = f": do you mean {like[0]!r}?" if like else f"; it takes {', '.join(known)}"
            raise ValueError(f"{name}: there is no setting {key!r}{hint}")
    for key, why in (("shown", "the article that was shown"), ("payoff", "what it paid")):
        if key not in given:
            raise ValueError(f"{name}: {key} is missing: say which column is {why}")
    for key in ("timestamp", "candidates"):
        if isinstance(given.get(key), str):
            given[key] = {"column": given[key]}
    if isinstance(given.get("missing"), str):
        given["missing"] = given["missing"].split(",")
    if isinstance(articles := given.get("articles"), str):
        given["articles"] = {"file": articles}
    elif isinstance(articles, dict):
        for key in ("from", "until"):
            if isinstance(articles.get(key), str):
                articles[key] = {"column": articles[key]}
    for side in ("user", "article"):
        given[side] = _fields(f"{name}: [{side}]", given.get(side, {}))
    try:
        mapping = msgspec.convert(given, ColumnMapping, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"{name}: {error}") from None
    _check(mapping, name)
    return mapping


def _fields(where: str, given: Any) -> Any:
    if not isinstance(given, dict):
        raise ValueError(f"{where} must be fields with their kinds, got {given!r}")
    fields = {}
    for name, value in given.items():
        spec = {"kind": value} if isinstance(value, str) else dict(value)
        spec.setdefault("column", name)
        if spec.get("kind") not in TYPES:
            raise ValueError(
                f"{where} {name}: the kind is one of {KINDS}, got {spec.get('kind')!r}"
            )
        if name in RESERVED_COLUMNS or name == "visitor":
            raise ValueError(
                f"{where} {name}: a field cannot be called {name!r}; name it otherwise, and say "
                f'its column: {{ column = "{name}", kind = "{spec["kind"]}" }}'
            )
        fields[name] = spec
    return fields


def _check(mapping: ColumnMapping, name: str) -> None:
    try:
        mapping.expression()
    except ValueError as error:
        raise ValueError(f"{name}: payoff: {error}") from None
    if mapping.candidates is None:
        if mapping.articles is None or mapping.articles.from_ is None:
            raise ValueError(
                f"{name}: candidates is missing, and without it nobody knows what could have been "
                "shown: say which column lists the articles, or give an articles file with the "
                'time that each was live from ([articles] file = "…", from = "…", until = "…")'
            )
        if mapping.timestamp is None:
            raise ValueError(
                f"{name}: candidates are the articles that were live at the time of the event, so "
                "timestamp is needed: say which column it is"
            )
    if mapping.encoding is not None:
        check_encoding(mapping.encoding, f"{name}: encoding")
    if mapping.timestamp is not None:
        check_format(mapping.timestamp.format, f"{name}: timestamp")
    for side, fields in (("user", mapping.user), ("article", mapping.article)):
        for key, field in fields.items():
            check_format(field.format, f"{name}: [{side}] {key}")
    if mapping.articles is not None:
        if mapping.articles.encoding is not None:
            check_encoding(mapping.articles.encoding, f"{name}: articles.encoding")
        for each in (mapping.articles.from_, mapping.articles.until):
            check_format("auto" if each is None else each.format, f"{name}: [articles]")
    if mapping.article and mapping.articles is None:
        raise ValueError(f"{name}: [article] has fields, but there is no [articles] file of them")
    if mapping.articles is not None and not (mapping.articles.live_hours or 1.0) > 0:
        raise ValueError(f"{name}: articles.live_hours must be above 0")


def _set(tree: dict[str, Any], key: str, value: Any) -> None:
    """`user.age=number` sets tree["user"]["age"]; a table takes the place of a name."""
    *above, last = key.split(".")
    for part in above:
        inner = tree.get(part)
        if not isinstance(inner, dict):
            inner = {} if inner is None else _named(part, inner, above)
            tree[part] = inner
        tree = inner
    tree[last] = _copied(value) if isinstance(value, Mapping) else value


def _named(part: str, value: Any, above: list[str]) -> dict[str, Any]:
    """What a short form stands for: a kind in a profile, a column elsewhere."""
    key: Literal["kind", "column"] = "kind" if above[0] in ("user", "article") else "column"
    return {key: value}


def _copied(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _copied(v) if isinstance(v, Mapping) else v for k, v in tree.items()}
