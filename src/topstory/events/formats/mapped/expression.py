"""Payoffs as small expressions of columns: `clicked`, `dwell > 30`, `clicked + 3 * subscribed`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import Floats

MAX_TOKENS = 200  # of an expression, which bounds how deeply it can nest

_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"  # outcome.click is a column of JSON lines
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)|(?P<name>" + _NAME + r")"
    r"|`(?P<quoted>[^`]+)`|\"(?P<text>[^\"]*)\"|'(?P<text2>[^']*)'"
    r"|(?P<sign>==|!=|>=|<=|[-+*()<>]))"
)
_WORDS = ("and", "or")
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    **{">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le},
    **{"==": operator.eq, "!=": operator.ne},
}
_FORMS = (
    "a payoff is a column, or a few of them: clicked, dwell_seconds > 30, "
    'clicked + 3 * subscribed, kind == "click" and dwell_seconds > 30'
)

Codes = npt.NDArray[np.int64]
Node = Callable[["ExpressionColumns"], Any]


class ExpressionColumns(NamedTuple):
    """The columns of an expression."""

    numbers: Mapping[str, Floats]  # (n,) each; nan is missing
    texts: Mapping[str, tuple[Codes, list[str | None]]]  # (n,) codes, and what they mean


@dataclass(frozen=True)
class Expression:
    """A parsed payoff."""

    columns: tuple[str, ...]
    numbers: tuple[str, ...]  # of the columns, those that are numbers
    texts: tuple[str, ...]  # those that are compared with a text
    evaluate: Callable[[ExpressionColumns, int], Floats] = field(compare=False)  # of n rows


def as_expression(column: str) -> str:
    """An expression that is this column.

    >>> as_expression("outcome.click"), as_expression("was it clicked?")
    ('outcome.click', '`was it clicked?`')
    """
    plain = re.fullmatch(_NAME, column) and column not in _WORDS
    return column if plain else f"`{column}`"


def parse(text: str) -> Expression:
    """Parse a payoff; the error says what was expected and where.

    >>> worth = parse("clicked + 3 * (dwell > 30)")
    >>> worth.columns
    ('clicked', 'dwell')
    >>> columns = {"clicked": np.array([0.0, 1.0, 1.0]), "dwell": np.array([0.0, 9.0, 60.0])}
    >>> worth.evaluate(ExpressionColumns(columns, {}), 3)
    array([0., 1., 4.])
    >>> parse("clicked +")
    Traceback (most recent call last):
    ...
    ValueError: 'clicked +' ends where a column or a number should come; a payoff is a column, ...
    """
    parser = _Parser(text)
    node = parser.either()
    if parser.at < len(parser.tokens):
        raise parser.unexpected("the end")

    def evaluate(row: ExpressionColumns, rows: int) -> Floats:
        with np.errstate(invalid="ignore", over="ignore"):
            return np.broadcast_to(np.asarray(node(row), np.float64), (rows,)).copy()

    numbers, texts = tuple(parser.numbers), tuple(parser.texts)
    return Expression(tuple(dict.fromkeys((*numbers, *texts))), numbers, texts, evaluate)


class _Parser:
    """By recursive descent, one method for each rule.

    either := both (or both)*; both := test (and test)*; test := sum (compared sum)?;
    sum := product (± product)*; product := part (* part)*; part := number, column, -part, (either).
    """

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.tokens: list[tuple[str, str]] = []
        self.numbers: dict[str, None] = {}
        self.texts: dict[str, None] = {}
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None or len(self.tokens) >= MAX_TOKENS:
                raise ValueError(f"{text!r} cannot be read from {text[place:][:20]!r} on; {_FORMS}")
            kind = found.lastgroup or ""
            self.tokens.append(({"text2": "text"}.get(kind, kind), found[kind]))
            place = found.end()
        if not self.tokens:
            raise ValueError(f"it is empty; {_FORMS}")

    def unexpected(self, wanted: str) -> ValueError:
        if self.at >= len(self.tokens):
            return ValueError(f"{self.text!r} ends where {wanted} should come; {_FORMS}")
        found = self.tokens[self.at][1]
        return ValueError(f"{self.text!r} has {found!r} where {wanted} should come; {_FORMS}")

    def next_is(self, *signs: str) -> str | None:
        """Take the next token if it is one of these signs or words."""
        if self.at < len(self.tokens):
            kind, value = self.tokens[self.at]
            if kind in ("sign", "name") and value in signs:
                self.at += 1
                return value
        return None

    def either(self) -> Node:
        return self._joined(self.both, {"or": lambda a, b: _logical(a, b, np.logical_or)})

    def both(self) -> Node:
        return self._joined(self.test, {"and": lambda a, b: _logical(a, b, np.logical_and)})

    def sum(self) -> Node:
        return self._joined(self.product, {"+": operator.add, "-": operator.sub})

    def product(self) -> Node:
        return self._joined(self.part, {"*": operator.mul})

    def _joined(self, inner: Callable[[], Node], signs: dict[str, Any]) -> Node:
        node = inner()
        while sign := self.next_is(*signs):
            node = _applied(signs[sign], node, inner())
        return node

    def test(self) -> Node:
        if (kind := self._compares_text()) is not None:
            return kind
        node = self.sum()
        if sign := self.next_is(*_COMPARE):
            compare = _COMPARE[sign]
            return _applied(lambda a, b: _known(a, b, compare(a, b)), node, self.sum())
        return node

    def _compares_text(self) -> Node | None:
        """`column == "text"`, or `!=`."""
        ahead = self.tokens[self.at : self.at + 3]
        if len(ahead) < 3 or ahead[2][0] != "text" or ahead[0][0] not in ("name", "quoted"):
            return None
        (_, name), (_, sign), (_, text) = ahead
        if sign not in ("==", "!="):
            self.at += 1
            raise self.unexpected("== or !=")
        self.at += 3
        self.texts[name] = None

        def compared(row: ExpressionColumns) -> Any:
            codes, meaning = row.texts[name]
            alike = [
                np.nan if each is None else float((each == text) == (sign == "=="))
                for each in meaning
            ]
            return np.array(alike, np.float64)[codes]

        return compared

    def part(self) -> Node:
        if self.next_is("("):
            node = self.either()
            if not self.next_is(")"):
                raise self.unexpected("')'")
            return node
        if self.next_is("-"):
            inner = self.part()
            return lambda row: -inner(row)
        if self.at >= len(self.tokens):
            raise self.unexpected("a column or a number")
        kind, value = self.tokens[self.at]
        if kind == "number":
            self.at += 1
            number = float(value)
            return lambda row: number
        if kind == "quoted" or (kind == "name" and value not in _WORDS):
            self.at += 1
            self.numbers[value] = None
            return lambda row: row.numbers[value]
        raise self.unexpected("a column or a number")


def _applied(function: Callable[[Any, Any], Any], left: Node, right: Node) -> Node:
    return lambda row: function(left(row), right(row))


def _known(a: Any, b: Any, result: Any) -> Any:
    """The result as 0 or 1; nan where a side is missing."""
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.asarray(result, np.float64))


def _logical(a: Any, b: Any, function: Any) -> Any:
    return _known(a, b, function(np.asarray(a) != 0, np.asarray(b) != 0))
