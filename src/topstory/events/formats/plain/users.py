"""Users of the plain layout: lists of numbers, named numbers, or the indices of ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.events.columns.contexts import SparseContexts
from topstory.events.formats.faults import NotAnEvent
from topstory.events.formats.pipeline.first_event import FirstEvent
from topstory.events.formats.pipeline.validation import BAD_USER, MAX_FLOAT32, as_float

USER_PREFIX = "user_"
USER_ID = "user_id"
NOT_A_NUMBER = (
    "{} is not a finite number: the plain layout takes numbers, and a mapping takes strings and "
    "missing values, too (--suggest writes one)"
)
USER_ID_FAULT = (
    "the field user_id would become a feature: drop it or rename it, or give a field user"
)


class SparseUser(msgspec.Struct, frozen=True):
    """A user whose features are 0 or 1, by the indices of the ones."""

    on: list[int]
    dimension: int


class NamedUsers:
    """Users whose features are fields of the event: `user_age`, `user_new` and so on.

    >>> users = NamedUsers(FirstEvent())
    >>> users.values({"user_age": 0.5, "user_new": True, "shown": "a"})
    [0.5, 1.0]
    """

    def __init__(self, first_event: FirstEvent) -> None:
        self._first_event = first_event

    def values(self, event: Mapping[str, Any]) -> list[float]:
        """The values, in the order in which the first event names them."""
        names = [name for name in event if name.startswith(USER_PREFIX)]
        if not names:
            raise NotAnEvent("there is no user, nor a field user_…")
        if USER_ID in names:
            raise NotAnEvent(USER_ID_FAULT)
        first = self._first_event.setdefault("names", names)
        if len(names) != len(first):
            raise NotAnEvent("the user's fields are not those of the first event")
        try:
            values = [event[name] for name in first]
        except KeyError:
            raise NotAnEvent("the user's fields are not those of the first event") from None
        for name, value in zip(first, values, strict=True):
            if not isinstance(value, int | float):
                raise NotAnEvent(NOT_A_NUMBER.format(name))
        return [as_float(value) for value in values]


class UserChecker:
    """Checks that all users have the kind and the number of features of the first.

    >>> users = UserChecker(FirstEvent(), constant=True)
    >>> users.stack([users.check([0.5]), users.check([0.25])])
    array([[0.5 , 1.  ],
           [0.25, 1.  ]], dtype=float32)
    """

    def __init__(self, first_event: FirstEvent, constant: bool = False) -> None:
        self._first_event, self._constant = first_event, constant

    def check(self, user: list[float] | SparseUser) -> list[float] | list[int]:
        """The user's row, for `stack`; raises NotAnEvent."""
        sparse = isinstance(user, SparseUser)
        width = user.dimension if isinstance(user, SparseUser) else len(user)
        if not 1 <= width < 1 << 31:
            raise NotAnEvent("the user has no features")
        if (width, sparse) != self._first_event.setdefault("user", (width, sparse)):
            raise NotAnEvent("the user has another number of features than the first one")
        if not isinstance(user, SparseUser):
            if not all(abs(value) <= MAX_FLOAT32 for value in user):
                raise NotAnEvent(BAD_USER)
            return [*user, 1.0] if self._constant else user
        on = sorted(user.on)
        if len(set(on)) < len(on) or (on and not 0 <= on[0] <= on[-1] < width):
            raise NotAnEvent("a feature that is on is listed twice, or is not below the dimension")
        return [*on, width] if self._constant else on

    def stack(self, rows: list[Any]) -> npt.NDArray[np.float32] | SparseContexts:
        """(n, d) the rows as one matrix."""
        given, sparse = self._first_event.setdefault("user", (1, False))
        width = given + self._constant
        if not sparse:
            return np.array(rows, np.float64).reshape(len(rows), width).astype(np.float32)
        ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        on = np.fromiter((i for row in rows for i in row), np.int32, int(ends[-1]))
        return SparseContexts(ends, on, width)
