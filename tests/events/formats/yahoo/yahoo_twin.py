"""Yahoo's lines, read the plain way: split, float, one event after the other."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?", re.ASCII)
LARGEST = 3.4028234663852886e38  # a float32


class Event(NamedTuple):
    time: int
    shown: str
    click: int
    user: tuple[float, ...]  # the constant last; r6b: the features that are on
    pool: tuple[str, ...]


class Parsed(NamedTuple):
    events: list[Event]
    bad: list[int]  # line numbers
    articles: dict[str, tuple[float, ...] | None]
    lacking: int  # events whose pool lists an article without all its features


def read_r6a(text: bytes) -> Parsed:
    return _read(text, dense=True)


def read_r6b(text: bytes) -> Parsed:
    return _read(text, dense=False)


def _read(text: bytes, dense: bool) -> Parsed:
    events: list[Event] = []
    bad: list[int] = []
    articles: dict[str, tuple[float, ...] | None] = {}
    known: dict[str, tuple[float, ...]] = {}
    lacking = 0
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        try:
            event, found = _event(line.removesuffix(b"\r"), dense)
        except ValueError:
            bad.append(number)
            continue
        events.append(event)
        for key, features in found.items():
            if features is None:
                articles.setdefault(key, None)
                continue
            filled = tuple(0.0 if value is None else value for value in features)
            articles.setdefault(key, known.setdefault(key, filled))
        lacking += any(features is not None and None in features for features in found.values())
    return Parsed(events, bad, articles, lacking)


Found = dict[str, tuple[float | None, ...] | None]


def _event(line: bytes, dense: bool) -> tuple[Event, Found]:
    heading, user, *rest = line.split(b"|")
    time, shown, click = _words(heading)
    if not re.fullmatch("[0-9]{1,12}", time) or int(time) >= 253402300800:
        raise ValueError("time")
    name, *features = _words(user)
    if name != "user" or click not in ("0", "1"):
        raise ValueError("user, click")
    if dense:
        values = _dense(features)
        if None in values:
            raise ValueError("a user without all features")
    else:
        values = _sparse(features)
    pool: Found = {}
    for part in rest:
        key, *words = _words(part)
        if key in pool or (words and not dense):
            raise ValueError("twice")
        pool[key] = tuple(_dense(words)) if dense else None
    if shown not in pool:
        raise ValueError("not listed")
    users = tuple(value for value in values if value is not None)
    return Event(int(time), shown, int(click), users, tuple(pool)), pool


def _words(text: bytes) -> list[str]:
    return [word.decode() for word in text.split()]  # a UnicodeDecodeError is a ValueError


def _dense(words: list[str]) -> list[float | None]:
    features: dict[int, float] = {}
    for word in words:
        name, value = word.split(":")
        if name not in "123456" or len(name) != 1 or int(name) in features:
            raise ValueError("feature")
        if not NUMBER.fullmatch(value) or not abs(float(value)) <= LARGEST:
            raise ValueError("number")
        features[int(name)] = float(value)
    if features.get(1) != 1.0 or not all(math.isfinite(value) for value in features.values()):
        raise ValueError("constant")
    return [features.get(feature) for feature in (2, 3, 4, 5, 6, 1)]


def _sparse(words: list[str]) -> list[float | None]:
    on = [int(word) for word in words if re.fullmatch("[0-9]{1,3}", word)]
    if len(set(on)) < len(words) or 1 not in on or not all(1 <= i <= 136 for i in on):
        raise ValueError("features")
    return [*sorted(float(i - 2) for i in on if i > 1), 135.0]
