"""Returning users: which user each event belongs to, their contexts and raw profiles."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from topstory.events.columns.array_record import ArrayRecord
from topstory.events.columns.checks import first_row, numbers, one_per_event, owned
from topstory.events.columns.contexts import SparseContexts, as_contexts

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Visitors(ArrayRecord):
    """For each event the number of its user, and for each user the context and the profile.

    >>> visitors = Visitors.of([[0.2, 1.0], [0.7, 1.0]], number=[0, 1, 0], profiles=None)
    >>> visitors.contexts[visitors.number]
    array([[0.2, 1. ],
           [0.7, 1. ],
           [0.2, 1. ]], dtype=float32)
    """

    number: npt.NDArray[np.int32]  # (n,) the event's user: a row of the two below
    contexts: npt.NDArray[np.float32]  # (V, d)
    profiles: pa.Table | None  # V rows
    # (V,) who it is, dictionary-encoded, null: not known. The profile of a visitor may change: each
    # state of it is a row. None: each row is a visitor of its own, without a name.
    ids: Any = None

    @classmethod
    def of(
        cls,
        users: Any,
        number: npt.ArrayLike,
        profiles: Any,
        text: Collection[str] = (),
        ids: Any = None,
    ) -> Visitors:
        """From contexts (V, d), or None for the constant alone, and the number of each event."""
        found = numbers("visitor", number, kinds="iu")
        one_per_event("visitor", found, found.size)
        table = None
        if profiles is not None:
            from topstory.events.columns.profiles import as_profiles

            rows = None if users is None else len(users)
            table = as_profiles("profiles", profiles, rows, text)
            users = np.ones((len(table), 1)) if users is None else users
        elif users is None:
            raise ValueError("visitor needs the users' contexts (users=) or their profiles")
        contexts = as_contexts(users)
        if isinstance(contexts, SparseContexts):
            raise ValueError("visitor needs dense contexts: users must not be sparse")
        check_visitor_numbers(found, len(contexts), "row ")
        names = None if ids is None else as_visitor_ids(ids, len(contexts))
        return cls(owned(number, found, np.int32), contexts, table, names)

    @property
    def person(self) -> npt.NDArray[np.int64] | None:
        """(n,) equal for events of one visitor, -1: not known; None: it is known of no event.

        >>> visitors = Visitors.of([[1.0]] * 3, [0, 1, 2, 0], None, ids=["ann", None, "ann"])
        >>> visitors.person
        array([ 0, -1,  0,  0])
        """
        if self.ids is None:
            return self.number.astype(np.int64)
        if self.ids.null_count == len(self.ids) and len(self.ids):
            return None
        from topstory.events.columns.arrow_ids import as_numpy

        codes = self.ids.indices.cast("int64")
        rows = as_numpy(codes.fill_null(-1) if codes.null_count else codes)
        return np.asarray(rows[self.number], np.int64)

    def __getitem__(self, rows: Any) -> Visitors:
        return replace(self, number=self.number[rows])

    def that_came(self) -> Visitors:
        """Without the users of no event, whom rows of a log keep."""
        rows, number = np.unique(self.number, return_inverse=True)
        profiles, ids = self.profiles, self.ids
        if profiles is not None:
            from topstory.events.columns.profiles import take_profiles

            profiles = take_profiles(profiles, rows)
        kept = None if ids is None else as_visitor_ids(ids.take(rows).cast("string"), len(rows))
        return Visitors(number.astype(np.int32), self.contexts[rows], profiles, kept)


def as_visitor_ids(ids: Any, users: int) -> Any:
    """The names of the users as one dictionary-encoded Arrow array; None is not known."""
    import pyarrow as pa

    kind = pa.dictionary(pa.int32(), pa.string())
    try:
        given = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(list(ids))
        if isinstance(given, pa.ChunkedArray):
            given = given.combine_chunks()
        if pa.types.is_null(given.type):
            given = given.cast(pa.string())
        if not pa.types.is_dictionary(given.type):
            given = given.cast(pa.string()).dictionary_encode()
        made = given.cast(kind)
    except (pa.ArrowException, TypeError) as error:
        raise ValueError(f"visitor_ids must be strings, or None: {error}") from None
    if len(made) != users:
        raise ValueError(f"visitor_ids must have a row for each of the {users}, got {len(made)}")
    return made


def check_visitor_numbers(found: npt.NDArray[Any], users: int, where: str, start: int = 0) -> None:
    """Raise ValueError for a visitor number that is not one of the users."""
    row = first_row(
        len(found), lambda low, high: (found[low:high] < 0) | (found[low:high] >= users)
    )
    if row is not None:
        raise ValueError(
            f"{where}{start + row}: visitor {found[row]}; there are {users} users, from 0 on"
        )


def join_visitors(parts: Sequence[Visitors | None]) -> Visitors | None:
    """The visitors of concatenated logs; None if some log does not identify its visitors.

    Logs that share one table of users (parts of one log or of one world) keep sharing it.
    """
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    first = known[0]
    if all(
        part.contexts is first.contexts
        and part.profiles is first.profiles
        and part.ids is first.ids
        for part in known
    ):
        return replace(first, number=np.concatenate([part.number for part in known]))
    import pyarrow as pa

    from topstory.events.columns.profiles import as_profiles, same_columns

    profiles = [part.profiles for part in known]
    tables = [table for table in profiles if table is not None]
    starts = np.cumsum([0, *(len(part.contexts) for part in known)]).astype(np.int32)
    contexts = np.concatenate([part.contexts for part in known])
    table = None
    if tables and same_columns(profiles):
        table = as_profiles("profiles", pa.concat_tables(tables), len(contexts))
    names = None
    if all(part.ids is not None for part in known):
        names = as_visitor_ids(
            pa.concat_arrays([part.ids.cast(pa.string()) for part in known]), len(contexts)
        )
    number = np.concatenate([p.number + s for p, s in zip(known, starts, strict=False)])
    return Visitors(number, contexts, table, names)
