"""The users of an import: one row for each state of a visitor's profile, found anew each time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topstory.events.columns.arrow_ids import as_numpy
from topstory.events.columns.profiles import as_profiles
from topstory.events.columns.visitors import Visitors, as_visitor_ids
from topstory.events.formats.mapped.fields import Texts
from topstory.events.formats.mapped.mapping import Field

Hashes = npt.NDArray[np.uint64]
Key = TypeVar("Key", bound=Hashable)


class People:
    """Numbers the distinct (visitor, profile) pairs in order of appearance.

    A pair is known by a hash of 128 bits: two different ones in a billion agree with a
    probability of 1e-21.

    >>> people = People({"device": Field("category")})
    >>> table = pa.table({"device": pa.array(["phone", "desk", "phone"]).dictionary_encode()})
    >>> people.rows(Texts(np.array([0, 0, 0]), ["ann"]), table)
    array([0, 1, 0], dtype=int32)
    >>> people.rows(Texts(np.array([1, 0, 0]), ["ann", "bob"]), table)
    array([2, 1, 0], dtype=int32)
    """

    def __init__(self, fields: dict[str, Field]) -> None:
        self._fields = fields
        self._known: dict[bytes, int] = {}
        self._codes: dict[str, dict[str | None, int]] = {}  # column -> text -> its number
        self._ids: list[str | None] = []
        self._parts: list[pa.Table] = []

    def rows(self, visitor: Texts | None, profiles: pa.Table) -> npt.NDArray[np.int32]:
        """(n,) the row of each event's user; `visitor`: who it is."""
        count = len(profiles) if visitor is None else len(visitor.codes)
        first, second = np.zeros(count, np.uint64), np.ones(count, np.uint64)
        columns = [self._numbers(name, profiles.column(name)) for name in profiles.column_names]
        if visitor is not None:
            columns.append(self._coded("", visitor.codes, visitor.values))
        for numbers in columns:
            first, second = _mixed(first ^ numbers), _mixed(second + numbers)
        # By the first hash alone, which sorts fast; the second says whether they are the same.
        _, at, inverse = np.unique(first, return_index=True, return_inverse=True)
        if (second != second[at][inverse]).any():
            pairs = np.stack((first, second), axis=1)
            _, at, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
            inverse = inverse.ravel()
        order = np.argsort(at)  # in order of appearance
        pairs = np.stack((first[at[order]], second[at[order]]), axis=1)
        before = len(self._known)
        found = np.empty(len(at), np.int64)
        found[order] = numbered(self._known, pairs.view("V16").ravel().tolist())
        new = at[order][found[order] >= before]
        if len(new):
            self._parts.append(profiles.take(new))
            self._ids += (
                [None] * len(new)
                if visitor is None
                else [visitor.values[code] for code in visitor.codes[new].tolist()]
            )
        return found[inverse].astype(np.int32)

    def visitors(self) -> Visitors:
        """All users, with no events: their contexts are the constant alone."""
        contexts = np.ones((len(self._ids), 1), np.float32)
        contexts.flags.writeable = False
        table = None
        if self._fields:
            kinds = {name: field.kind for name, field in self._fields.items()}
            table = as_profiles("profiles", pa.concat_tables(self._parts), kinds=kinds)
        ids = as_visitor_ids(pa.array(self._ids, pa.string()), len(self._ids))
        return Visitors(np.empty(0, np.int32), contexts, table, ids)

    def _numbers(self, name: str, column: Any) -> Hashes:
        """A number for each value; equal for equal values of all batches."""
        array = column.combine_chunks()
        kind = array.type
        if pa.types.is_list(kind):
            array = pc.binary_join(array, "\x1f")
            kind = array.type
        if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
            encoded = array if pa.types.is_dictionary(kind) else array.dictionary_encode()
            values = encoded.dictionary.to_pylist()
            indices = encoded.indices
            codes = indices.fill_null(len(values)) if indices.null_count else indices
            return self._coded(name, as_numpy(codes), [*values, None])
        if pa.types.is_floating(kind):
            bits = array.fill_null(np.nan).to_numpy(zero_copy_only=False)
            return np.asarray(bits + 0.0, np.float64).view(np.uint64)
        if pa.types.is_boolean(kind):
            array = array.cast(pa.int8())
        whole = array.cast(pa.int64()).fill_null(-1)
        return np.asarray(whole.to_numpy(zero_copy_only=False), np.int64).view(np.uint64)

    def _coded(self, name: str, codes: Any, values: list[str | None]) -> Hashes:
        # None is numbered, too.
        numbers = numbered(self._codes.setdefault(name, {}), values)
        return np.asarray(numbers[codes].view(np.uint64))


def numbered(known: dict[Key, int], keys: Sequence[Key]) -> npt.NDArray[np.int64]:
    """(n,) the number of each key; those that are new are numbered on, and become known.

    Two passes of the interpreter's own loops: with a million keys known, five times as fast as
    `setdefault` for each.

    >>> known = {"a": 0}
    >>> numbered(known, ["b", "a", "b"]), known
    (array([1, 0, 1]), {'a': 0, 'b': 1})
    """
    found = list(map(known.get, keys))
    if None in found:
        fresh = dict.fromkeys(key for key, at in zip(keys, found, strict=True) if at is None)
        known.update(zip(fresh, range(len(known), len(known) + len(fresh)), strict=True))
        found = list(map(known.get, keys))
    return np.array(found, np.int64)


def _mixed(values: Hashes) -> Hashes:
    """Each number spread over all bits (splitmix64's finalizer)."""
    with np.errstate(over="ignore"):
        values = values + np.uint64(0x9E3779B97F4A7C15)
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))
