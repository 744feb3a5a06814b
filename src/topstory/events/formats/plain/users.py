"""The users of the plain layout: lists of numbers, named numbers, or the features that are on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.events.columns.contexts import SparseContexts
from topstory.events.formats.faults import NoEvent
from topstory.events.formats.pipeline.first_event import Shape
from topstory.events.formats.pipeline.validation import FLOAT32, USER, as_float

PREFIX = "user_"
ID = "user_id"
ID_FAULT = "the field user_id would become a feature: drop it or rename it, or give a field user"


class On(msgspec.Struct, frozen=True):
    """A user with features that are 0 or 1, by those that are 1."""

    on: list[int]
    dimension: int


class NamedUsers:
    """Users whose features are fields of the event: `user_age`, `user_new` and so on.

    >>> users = NamedUsers(Shape())
    >>> users.values({"user_age": 0.5, "user_new": True, "shown": "a"})
    [0.5, 1.0]
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def values(self, event: Mapping[str, Any]) -> list[float]:
        """The values, in the order in which the first event names them."""
        names = [name for name in event if name.startswith(PREFIX)]
        if not names:
            raise NoEvent("there is no user, nor a field user_…")
        if ID in names:
            raise NoEvent(ID_FAULT)
        first = self._shape.first("names", names)
        if len(names) != len(first):
            raise NoEvent("the user's fields are not those of the first event")
        try:
            values = [event[name] for name in first]
        except KeyError:
            raise NoEvent("the user's fields are not those of the first event") from None
        if not all(isinstance(value, int | float) for value in values):
            raise NoEvent("a user feature is not a number")
        return [as_float(value) for value in values]


class Users:
    """Sees to it that all users are of one kind and size: those of the first.

    >>> users = Users(Shape(), constant=True)
    >>> users.stack([users.check([0.5]), users.check([0.25])])
    array([[0.5 , 1.  ],
           [0.25, 1.  ]], dtype=float32)
    """

    def __init__(self, shape: Shape, constant: bool = False) -> None:
        self._shape, self._constant = shape, constant

    def check(self, user: list[float] | On) -> list[float] | list[int]:
        """The user's row, for `stack`; raises NoEvent."""
        sparse = isinstance(user, On)
        width = user.dimension if isinstance(user, On) else len(user)
        if not 1 <= width < 1 << 31:
            raise NoEvent("the user has no features")
        if (width, sparse) != self._shape.first("user", (width, sparse)):
            raise NoEvent("the user has another number of features than the first one")
        if not isinstance(user, On):
            if not all(abs(value) <= FLOAT32 for value in user):
                raise NoEvent(USER)
            return [*user, 1.0] if self._constant else user
        on = sorted(user.on)
        if len(set(on)) < len(on) or (on and not 0 <= on[0] <= on[-1] < width):
            raise NoEvent("a feature that is on is listed twice, or is not below the dimension")
        return [*on, width] if self._constant else on

    def stack(self, rows: list[Any]) -> npt.NDArray[np.float32] | SparseContexts:
        """(n, d) all of them."""
        given, sparse = self._shape.first("user", (1, False))
        width = given + self._constant
        if not sparse:
            return np.array(rows, np.float64).reshape(len(rows), width).astype(np.float32)
        ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        on = np.fromiter((i for row in rows for i in row), np.int32, int(ends[-1]))
        return SparseContexts(ends, on, width)
