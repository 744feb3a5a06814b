"""Named features, as Vowpal Wabbit reads them from JSON: pairs of name and value."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from topstory.events.formats.pipeline.validation import as_float

Named = tuple[str, float]

MAX_ID_CHARACTERS = 64


def named_features(value: Any, name: str = "") -> list[Named]:
    """The features of a JSON value, by Vowpal Wabbit's rules.

    Objects are namespaces, joined to the names in them by `^`; a number is a feature's value; a
    text makes the feature `name=text` of value 1; true is 1; false and null are nothing; numbers
    in an array are `name[0]`, `name[1]`, …; the words of `_text` are features; other keys that
    begin with `_` are ignored.

    >>> named_features({"User": {"age": 0.5, "city": "Rome", "_id": 7}, "new": True})
    [('User^age', 0.5), ('User^city=Rome', 1.0), ('new', 1.0)]
    >>> named_features({"x": [0.5, 2], "j": [{"type": "hot"}]})
    [('x[0]', 0.5), ('x[1]', 2.0), ('j^type=hot', 1.0)]
    """
    found: list[Named] = []
    _collect(value, name, found)
    return found


def _collect(value: Any, name: str, found: list[Named]) -> None:
    # The most frequent kinds first: this is where reading decision-service JSON spends its time.
    kind = type(value)
    if kind is float:
        found.append((name, value))
    elif kind is str:
        found.append((f"{name}={value}", 1.0))
    elif kind is int:
        found.append((name, as_float(value)))
    elif kind is dict:
        for key, inner in value.items():
            if not key.startswith("_"):
                _collect(inner, f"{name}^{key}" if name else key, found)
            elif key == "_text" and isinstance(inner, str):
                found.extend((f"{name}^{w}" if name else w, 1.0) for w in inner.split())
    elif kind is list:
        for i, inner in enumerate(value):
            number = type(inner) is float or type(inner) is int
            _collect(inner, f"{name}[{i}]" if number else name, found)
    elif value is True:
        found.append((name, 1.0))


def shortest_text(value: float) -> str:
    """The shortest text that stands for exactly this number.

    >>> shortest_text(2.0), shortest_text(0.1), shortest_text(1234567.5)
    ('2', '0.1', '1234567.5')
    """
    return repr(value).removesuffix(".0")


def feature_id(features: Sequence[Named]) -> str:
    """An id for an article without one, made of its features: equal features, equal id.

    >>> feature_id([("Topic^kind=news", 1.0), ("Topic^length", 0.5)])
    'Topic^kind=news Topic^length:0.5'
    """
    words = sorted(
        name if value == 1 else f"{name}:{shortest_text(value)}" for name, value in features
    )
    text = " ".join(words)
    if 0 < len(text) <= MAX_ID_CHARACTERS:
        return text
    exact = repr(sorted(features)).encode("utf-8", "surrogatepass")
    return blake2b(exact, digest_size=8).hexdigest()
