"""Columns of an export as fields of profiles: cleaned, and of their kind; nothing drops a row."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topstory.events.columns.arrow_ids import as_numpy, is_string_type
from topstory.events.columns.checks import Mask
from topstory.events.columns.profiles import TYPES
from topstory.events.formats.mapped.mapping import MappedField
from topstory.events.formats.mapped.moments import column_moments
from topstory.events.formats.tabular.arrow_columns import (
    INVALID_TIME,
    Column,
    as_text,
    column_numbers,
    dictionary_codes,
)
from topstory.events.formats.tabular.text_columns import plain_numbers

_YES = {"true", "t", "yes", "y", "1", "1.0", "ja", "wahr", "oui", "vrai", "sí", "si", "sim"}
_NO = {"false", "f", "no", "n", "0", "0.0", "nein", "falsch", "non", "faux", "não", "nao", "nee"}
_GROUPED = r"^\s*[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d*)?([eE][+-]?\d+)?\s*$"  # 1.234,50


class Texts(NamedTuple):
    """A column as texts without blanks around them; None: missing, or not UTF-8."""

    codes: npt.NDArray[np.int64]  # (n,)
    values: list[str | None]

    def mapped(self, values: list[Any]) -> list[Any]:
        """`values[code]` of each row."""
        return [values[code] for code in self.codes.tolist()]


def texts(column: Column, missing: Collection[str]) -> Texts:
    """The texts of a column; those in `missing` are None.

    >>> texts(pa.array([b" US", b"N/A", b"US"]), ["N/A"])
    Texts(codes=array([0, 1, 2]), values=['US', None, 'US', None])
    """
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.string())
    if pa.types.is_floating(column.type):
        column = _without_points(column)
    plain = as_strings(column)
    if plain is None:
        codes, values = dictionary_codes(column)
        return Texts(codes, [_clean(value, missing) for value in values])
    encoded = plain.dictionary_encode()
    known = cleaned(encoded.dictionary, missing).to_pylist()
    indices = encoded.indices.fill_null(len(known)) if encoded.null_count else encoded.indices
    return Texts(np.asarray(as_numpy(indices), np.int64), [*known, None])


def clean_texts(column: Column, missing: Collection[str]) -> Column:
    """The same as an array of strings, for columns in which most values differ.

    >>> clean_texts(pa.array([b" US", b"N/A", b"US"]), ["N/A"]).to_pylist()
    ['US', None, 'US']
    """
    plain = as_strings(column)
    if plain is not None:
        return cleaned(plain.cast(pa.string()), missing)
    codes, values = texts(column, missing)
    return pa.array(values, pa.string()).take(codes)


def as_strings(column: Column) -> Column | None:
    """A column of text as strings; None if it is another column, or not UTF-8."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if not (pa.types.is_binary(kind) or is_string_type(kind)):
        return None
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return None


def cleaned(strings: Column, missing: Collection[str]) -> Column:
    """Strings without blanks around them; null for those in `missing`."""
    trimmed: Column = pc.utf8_trim_whitespace(strings)
    absent: Column = pc.is_in(trimmed, value_set=pa.array(list(missing), pa.string()))
    return pc.if_else(absent, pa.scalar(None, pa.string()), trimmed)


def _clean(value: object, missing: Collection[str]) -> str | None:
    text = as_text(value)
    if text is None:
        return None
    text = text.strip()
    return None if text in missing else text


def _without_points(column: Column) -> Column:
    """Whole numbers without a point: pandas makes 7 of 7.0 where other rows have none."""
    whole = pc.equal(pc.floor(column), column)
    if pc.all(whole, min_count=0).as_py() and not pc.any(pc.is_inf(column)).as_py():
        try:
            return pc.if_else(pc.is_nan(column), None, column).cast(pa.int64())
        except pa.ArrowInvalid:
            return column
    return column


def pointed(column: Column, decimal: str) -> Column:
    """Numbers in texts with a decimal point, where an export has a comma: 1.234,50 is 1234.50.

    A point that stands between no thousands makes it no number: 12.50 is not 1250.

    >>> pointed(pa.array([b"1.234,50", b"7", b"12.50"]), ",").to_pylist()
    ['1234.50', '7', '12.50?']
    """
    plain = as_strings(column) if decimal == "," else None
    if plain is None:
        return column
    whole: Column = pc.replace_substring(pc.replace_substring(plain, ".", ""), ",", ".")
    grouped: Column = pc.match_substring_regex(plain, _GROUPED)
    odd = pc.and_(pc.match_substring(plain, "."), pc.invert(grouped))
    if not pc.any(odd, min_count=0).as_py():
        return whole
    return pc.if_else(odd, pc.binary_join_element_wise(plain, "?", ""), whole)


def numbers(column: Column, missing: Collection[str] = ()) -> npt.NDArray[np.float64]:
    """(n,) numbers; true and false, yes and no count 1 and 0; nan where there is none.

    >>> numbers(pa.array([b"1", b"true", b"No", b"?"]))
    array([ 1.,  1.,  0., nan])
    """
    plain = None if any(map(_is_number, missing)) else plain_numbers(column)
    if plain is None:
        return _any_numbers(column, missing)
    found, read = plain
    rest = np.flatnonzero(~read)
    if len(rest):
        found[rest] = _any_numbers(column.take(pa.array(rest)), missing)
    return found


def _any_numbers(column: Column, missing: Collection[str]) -> npt.NDArray[np.float64]:
    """Numbers however they are written."""
    plain = as_strings(column)
    if plain is not None:
        column = cleaned(plain, missing)  # else one empty text makes the whole column slow
    found = column_numbers(column).copy()
    odd = np.flatnonzero(np.isnan(found))
    if len(odd) and (is_string_type(column.type) or pa.types.is_binary(column.type)):
        codes, values = dictionary_codes(column.take(pa.array(odd)))
        found[odd] = np.array([_truth(as_text(value)) for value in values])[codes]
    return np.where(np.isinf(found), np.nan, found)


def _truths(column: Column, missing: Collection[str]) -> npt.NDArray[np.float64]:
    """The same, once for each of the few values that a column of truths has."""
    if as_strings(column) is None:
        return numbers(column, missing)
    codes, values = texts(column, missing)
    return numbers(pa.array(values, pa.string()))[codes]


def is_truths(words: Collection[str]) -> bool:
    """Whether all of these, in small letters, say true or false.

    >>> is_truths({"ja", "nein"}), is_truths({"yes", "maybe"})
    (True, False)
    """
    return all(word in _YES or word in _NO for word in words)


def _is_number(text: str) -> bool:
    try:
        return not np.isnan(float(text))
    except ValueError:
        return False


def _truth(text: str | None) -> float:
    word = (text or "").strip().lower()
    return 1.0 if word in _YES else 0.0 if word in _NO else np.nan


def not_utf8(column: Column) -> Mask:
    r"""Where a column of text is not UTF-8.

    >>> not_utf8(pa.array([b"caf\xe9", b"cafe", None])).tolist()
    [True, False, False]
    """
    if not pa.types.is_binary(column.type) or as_strings(column) is not None:
        return np.zeros(len(column), bool)
    codes, values = dictionary_codes(column)
    odd: Mask = np.array([each is not None and as_text(each) is None for each in values])[codes]
    return odd


def remark_on(side: str, name: str, field: MappedField) -> str:
    """What to say of values that cannot be read.

    >>> remark_on("user", "age", MappedField("number"))
    "user field 'age' is not a number here: taken as missing"
    """
    texts = field.kind in ("category", "categories", "text")
    kind = 'in UTF-8 (set encoding, such as "cp1252")' if texts else f"a {field.kind}"
    return f"{side} field {name!r} is not {kind} here: taken as missing"


class TypedField(NamedTuple):
    """A field's values in the type of its kind, and where a value was there but not readable."""

    array: Any
    unreadable: Mask


def typed_field(column: Column, field: MappedField, missing: Collection[str]) -> TypedField:
    """A column as a field. What is no number, no date, no truth value or no text becomes missing.

    >>> made = typed_field(pa.array([b"31", b"", b"old"]), MappedField("number"), [""])
    >>> made.array.to_pylist(), made.unreadable.tolist()
    ([31.0, None, None], [False, False, True])
    """
    match field.kind:
        case "category" | "text":
            found = texts(column, missing)
            return TypedField(_strings(found, field.kind == "text"), not_utf8(column))
        case "categories":
            return TypedField(_lists(column, field.separator, missing), not_utf8(column))
        case "date":
            micros = column_moments(column, field.format)
            lacking = micros == INVALID_TIME
            array: Any = pa.array(micros, mask=lacking).cast(TYPES["date"])
        case _:
            truths = field.kind == "boolean"
            values = (_truths if truths else numbers)(column, missing)
            if truths:
                values = np.where((values == 0) | (values == 1), values, np.nan)
            lacking = np.isnan(values)
            array = pa.array(np.nan_to_num(values), mask=lacking)
            array = array.cast(TYPES[field.kind])
    return TypedField(array, _present(column, lacking, missing))


def _present(column: Column, lacking: Mask, missing: Collection[str]) -> Mask:
    """Which of the rows that lack a value have something there all the same."""
    found = np.zeros(len(column), bool)
    rows = np.flatnonzero(lacking)
    if len(rows):
        codes, values = texts(column.take(pa.array(rows)), missing)
        found[rows] = np.array([value is not None for value in values])[codes]
    return found


def _strings(found: Texts, plain: bool) -> Any:
    known = list(dict.fromkeys(value for value in found.values if value is not None))
    place = {value: i for i, value in enumerate(known)}
    new = np.array([-1 if value is None else place[value] for value in found.values], np.int32)
    codes = new[found.codes]
    indices: Any = pa.array(codes, mask=codes < 0)
    made = pa.DictionaryArray.from_arrays(indices, pa.array(known, pa.string()))
    return made.cast(pa.string()) if plain else made


def _lists(column: Column, separator: str, missing: Collection[str]) -> Any:
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        rows = column.to_pylist()
        lists = [None if row is None else _members(map(as_text, row), missing) for row in rows]
    else:
        found = texts(column, missing)
        lists = found.mapped([split_list(value, separator, missing) for value in found.values])
    return pa.array(lists, pa.list_(pa.string()))


def split_list(text: str | None, separator: str, missing: Collection[str]) -> list[str] | None:
    """A list that was written as one text: with separators, as JSON, or as Python writes it.

    >>> split_list("a| b", "|", []), split_list('["a", "b"]', "|", []), split_list("['a']", "|", [])
    (['a', 'b'], ['a', 'b'], ['a'])
    """
    if text is None:
        return None
    if text.startswith("[") and text.endswith("]"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = [each.strip().strip("'\"") for each in text[1:-1].split(",")]
        return _members((None if each is None else str(each) for each in found), missing)
    return _members(text.split(separator), missing)


def _members(values: Any, missing: Collection[str]) -> list[str]:
    cleaned = (value.strip() for value in values if value is not None)
    return list(dict.fromkeys(value for value in cleaned if value and value not in missing))
