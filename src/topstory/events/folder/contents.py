"""A log folder: its layout, and `log.json`, its contents (docs/reference/log-format.md)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import msgspec

from topstory.events.columns.decisions import COLUMNS
from topstory.events.folder.location import Location

FORMAT = "topstory-log"
VERSION = 1
# Of a log whose contexts have numbers of the event: who does not know of them must not read it.
EVENTS_VERSION = 2
# Of one where some of those are features of the article.
LAST_VERSION = FEATURES_VERSION = 3

CONTENTS = "log.json"
ARTICLES = "articles.parquet"
POOLS = "pools.parquet"
USERS = "users.parquet"
EVENTS = "events"

# Checked so that no file outside the folder is ever opened, whatever log.json says.
_FILE_NAME = re.compile(rf"{EVENTS}/[A-Za-z0-9_-]+\.parquet")


class EventFile(msgspec.Struct, frozen=True):
    """One file of events."""

    name: str  # "events/2009-05-01.parquet"
    events: int


class LogContents(msgspec.Struct, frozen=True, omit_defaults=True):
    """The contents of `log.json`."""

    format: str
    version: int
    events: int
    articles: int
    pools: int
    dimension: int
    contexts: Literal["dense", "sparse"]
    article_features: int | None  # how many; None: articles have no features
    timed: bool
    recorded_propensity: bool
    files: tuple[EventFile, ...]  # in the order of the events
    users: int | None = None  # rows of users.parquet; None: events hold their contexts themselves
    user_profile: tuple[str, ...] | None = None  # columns of raw profiles; None: there are none
    article_profile: tuple[str, ...] | None = None
    user_profile_kinds: dict[str, str] | None = None  # field -> kind; None: strings are categories
    article_profile_kinds: dict[str, str] | None = None
    exact: bool = False  # whether events have `user_exact` and `payoff_exact`, too
    recorded_count: int | None = None  # of propensities; None: all, or none if not recorded
    feature_model: str | None = None  # that made contexts and features; None: unknown, or none
    decisions: tuple[str, ...] = ()  # the columns of decisions that events have
    visitor_ids: bool = False  # whether users.parquet says who each row is, in `visitor`
    event_numbers: int = 0  # of a context: the last before the constant, which are of the event
    varying: int = 0  # those of them that events hold for each article of the pool
    event_features: int = 0  # the last of those, which are features of the article
    propensity_estimate: str | None = None  # how propensities were estimated; None: they were not


class _Heading(msgspec.Struct, frozen=True):
    format: str
    version: int


def read_contents(folder: Location) -> LogContents:
    """Read `log.json`; the error says what is wrong with the folder.

    >>> read_contents(Path("no-such-folder"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: no-such-folder: there is no such folder
    """
    path = folder / CONTENTS
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: {_what_it_is(folder)}")
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{folder}: not a topstory log (it has no {CONTENTS}); `topstory import` makes one"
        ) from None
    try:
        heading = msgspec.json.decode(text, type=_Heading)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: not a topstory log's table of contents: {error}") from None
    if heading.format != FORMAT:
        raise ValueError(f"{path}: format is {heading.format!r}, not {FORMAT!r}")
    if not VERSION <= heading.version <= LAST_VERSION:
        raise ValueError(
            f"{path}: the log has format version {heading.version}, but this topstory reads "
            f"up to version {LAST_VERSION}; upgrade topstory"
        )
    try:
        contents = msgspec.json.decode(text, type=LogContents)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: damaged: {error}") from None
    _check(contents, path)
    return contents


def _what_it_is(path: Location) -> str:
    """Why a path is no log, and what to run if it is a file that can become one."""
    if not path.exists():
        return "there is no such folder"
    kinds = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
    found = [kinds[suffix] for suffix in path.suffixes if suffix in kinds]
    if not found:
        return "it is a file, not the folder of a log; `topstory import` makes one of it"
    return (
        f"it is a file, not the folder of a log: `topstory import {found[-1]} {path} logs/` makes "
        f"one of it, and with --suggest in place of logs/ a mapping of its columns"
    )


def write_contents(folder: Path, contents: LogContents) -> None:
    """Write `log.json`, indented."""
    text = msgspec.json.format(msgspec.json.encode(contents), indent=2)
    (folder / CONTENTS).write_bytes(text + b"\n")


def check_replaceable(folder: Path) -> None:
    """Raise FileExistsError unless the folder is empty or holds a topstory log."""
    if not folder.is_dir():
        raise FileExistsError(f"{folder}: it is a file; choose another place for the log")
    names = {entry.name for entry in folder.iterdir()}
    if not names:
        return
    try:
        heading = msgspec.json.decode((folder / CONTENTS).read_bytes(), type=_Heading)
        is_log = heading.format == FORMAT
    except (OSError, msgspec.DecodeError):
        is_log = False
    if not is_log:
        raise FileExistsError(
            f"{folder}: it is not empty and not a topstory log; "
            "nothing was changed: empty it, or choose another place"
        )
    others = sorted(names - {CONTENTS, ARTICLES, POOLS, USERS, EVENTS, ".DS_Store"})
    if others:
        raise FileExistsError(
            f"{folder}: besides a topstory log it holds {others[0]!r}, which replacing the log "
            "would delete; nothing was changed: move it away, or choose another place"
        )


def _check(contents: LogContents, path: Location) -> None:
    counts = [contents.events, contents.articles, contents.pools, contents.dimension - 1]
    counts += [contents.article_features or 0, contents.users or 0]
    counts += [contents.events - (contents.recorded_count or 0), contents.recorded_count or 0]
    if min(*counts, *(file.events for file in contents.files)) < 0:
        raise ValueError(f"{path}: damaged: it has a negative count")
    known = (contents.event_features, contents.varying, contents.event_numbers)
    if not 0 <= known[0] <= known[1] <= known[2] < contents.dimension or (
        contents.event_numbers and (contents.contexts != "dense" or contents.users is not None)
    ):
        raise ValueError(f"{path}: damaged: its contexts cannot have such numbers of events")
    if contents.exact and (contents.contexts != "dense" or contents.users is not None):
        raise ValueError(f"{path}: damaged: only dense contexts of events can be exact")
    if contents.visitor_ids and (
        contents.users is None or "visitor" in (contents.user_profile or ())
    ):
        raise ValueError(f"{path}: damaged: visitor_ids without a column for them in {USERS}")
    for names, kinds in (
        (contents.user_profile, contents.user_profile_kinds),
        (contents.article_profile, contents.article_profile_kinds),
    ):
        if kinds is not None and tuple(kinds) != names:
            raise ValueError(f"{path}: damaged: a profile's fields differ from those with a kind")
    unknown = [name for name in contents.decisions if name not in COLUMNS]
    if unknown or len(set(contents.decisions)) < len(contents.decisions):
        raise ValueError(
            f"{path}: damaged: the columns of decisions are {', '.join(contents.decisions)}; "
            f"there can be {', '.join(COLUMNS)}"
        )
    if contents.users is not None and "visitor" in contents.decisions:
        raise ValueError(f"{path}: damaged: it has visitors both in {USERS} and in decisions")
    for file in contents.files:
        if not _FILE_NAME.fullmatch(file.name):
            raise ValueError(f"{path}: damaged: {file.name!r} cannot be a file of events")
    total = sum(file.events for file in contents.files)
    if total != contents.events:
        raise ValueError(
            f"{path}: damaged: it counts {contents.events} events, but its files {total}"
        )
