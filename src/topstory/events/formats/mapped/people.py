"""The users of an import: one row for each state of a visitor's profile, found anew each time."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topstory.events.columns.arrow_ids import as_numpy
from topstory.events.columns.profiles import as_profiles
from topstory.events.columns.visitors import Visitors, as_visitor_ids
from topstory.events.formats.mapped.mapping import MappedField
from topstory.events.formats.mapped.numbering import Hashes, Numbering
from topstory.events.formats.tabular.text_columns import text_hashes
from topstory.kernels.parsing.numbering import mix


class People:
    """Numbers the distinct (visitor, profile) pairs in order of appearance.

    A pair is known by a hash of 128 bits, with a key of its own in each import: two different ones
    in a billion agree with a probability of 1e-20.

    >>> people = People({"device": MappedField("category")})
    >>> table = pa.table({"device": pa.array(["phone", "desk", "phone"]).dictionary_encode()})
    >>> people.rows(pa.array(["ann", "ann", "ann"]), table)
    array([0, 1, 0], dtype=int32)
    >>> people.rows(pa.array(["bob", "ann", "ann"]), table)
    array([2, 1, 0], dtype=int32)
    """

    def __init__(self, fields: dict[str, MappedField]) -> None:
        self._fields = fields
        self._known = Numbering()
        self._keys = secrets.randbits(64), secrets.randbits(64)
        self._ids: list[Any] = []
        self._parts: list[pa.Table] = []

    def rows(self, visitor: Any, profiles: pa.Table) -> npt.NDArray[np.int32]:
        """(n,) the row of each event's user; `visitor`: who it is, as strings, or None."""
        count = len(profiles) if visitor is None else len(visitor)
        first, second = (np.full(count, key, np.uint64) for key in self._keys)
        columns = [profiles.column(name).combine_chunks() for name in profiles.column_names]
        for column in columns if visitor is None else [*columns, visitor]:
            for values in self._hashes(column):
                mix(first, second, values)
        numbers, new = self._known(first, second)
        if len(new):
            self._parts.append(profiles.take(new))
            ids = pa.nulls(len(new), pa.string()) if visitor is None else visitor.take(new)
            self._ids.append(ids)
        return numbers

    def visitors(self) -> Visitors:
        """All users, with no events: their contexts are the constant alone."""
        count = len(self._known)
        contexts = np.ones((count, 1), np.float32)
        contexts.flags.writeable = False
        table = None
        if self._fields:
            kinds = {name: field.kind for name, field in self._fields.items()}
            table = as_profiles("profiles", pa.concat_tables(self._parts), kinds=kinds)
        ids = as_visitor_ids(pa.concat_arrays([*self._ids, pa.array([], pa.string())]), count)
        return Visitors(np.empty(0, np.int32), contexts, table, ids)

    def _hashes(self, array: Any) -> tuple[Hashes, ...]:
        """One or two numbers for each value; equal for equal values of all batches."""
        kind = array.type
        if pa.types.is_list(kind):
            array = pc.binary_join(array, "\x1f")
            kind = array.type
        if pa.types.is_dictionary(kind):
            # The dictionary's end stands for null.
            values = pa.concat_arrays([array.dictionary, pa.nulls(1, array.dictionary.type)])
            indices = array.indices
            codes = indices.fill_null(len(values) - 1) if indices.null_count else indices
            at = as_numpy(codes)
            return tuple(each[at] for each in text_hashes(values, self._keys))
        if pa.types.is_string(kind):
            return text_hashes(array, self._keys)
        if pa.types.is_floating(kind):
            bits = array.fill_null(np.nan).to_numpy(zero_copy_only=False)
            return (np.asarray(bits + 0.0, np.float64).view(np.uint64),)
        if pa.types.is_boolean(kind):
            array = array.cast(pa.int8())
        whole = array.cast(pa.int64()).fill_null(-1)
        return (np.asarray(whole.to_numpy(zero_copy_only=False), np.int64).view(np.uint64),)
