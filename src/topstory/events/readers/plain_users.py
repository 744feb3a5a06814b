"""The users of the plain layout: lists of numbers, named numbers, or the features that are on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.events.contexts import SparseContexts
from topstory.events.readers.named_features import as_float

PREFIX = "user_"


class NotAUser(ValueError):
    """Why a user cannot be taken, in words that do not vary from event to event."""


class On(msgspec.Struct, frozen=True):
    """A user with features that are 0 or 1, by those that are 1."""

    on: list[int]
    dimension: int


class NamedUsers:
    """Users whose features are fields of the event: `user_age`, `user_new` and so on.

    >>> users = NamedUsers()
    >>> users.values({"user_age": 0.5, "user_new": True, "shown": "a"})
    [0.5, 1.0]
    """

    def __init__(self) -> None:
        self._names: list[str] | None = None

    def values(self, event: Mapping[str, Any]) -> list[float]:
        """The values, in the order in which the first event names them."""
        names = [name for name in event if name.startswith(PREFIX)]
        if not names:
            raise NotAUser("there is no user, nor a field user_…")
        if self._names is None:
            self._names = names
        if len(names) != len(self._names):
            raise NotAUser("the user's fields are not those of the first event")
        try:
            values = [event[name] for name in self._names]
        except KeyError:
            raise NotAUser("the user's fields are not those of the first event") from None
        if not all(isinstance(value, int | float) for value in values):
            raise NotAUser("a user feature is not a number")
        return [as_float(value) for value in values]


class Users:
    """Sees to it that all users are of one kind and size: those of the first.

    >>> users = Users(constant=True)
    >>> users.stack([users.check([0.5]), users.check([0.25])])
    array([[0.5 , 1.  ],
           [0.25, 1.  ]], dtype=float32)
    """

    def __init__(self, constant: bool = False) -> None:
        self._constant = constant
        self._sparse = False
        self._width: int | None = None

    def check(self, user: list[float] | On) -> list[float] | list[int]:
        """The user's row, for `stack`; raises NotAUser."""
        sparse = isinstance(user, On)
        width = user.dimension if isinstance(user, On) else len(user)
        if not 1 <= width < 1 << 31:
            raise NotAUser("the user has no features")
        if self._width is None:
            self._width, self._sparse = width, sparse
        if (width, sparse) != (self._width, self._sparse):
            raise NotAUser("the user has another number of features than the first one")
        if not isinstance(user, On):
            return [*user, 1.0] if self._constant else user
        on = sorted(user.on)
        if len(set(on)) < len(on) or (on and not 0 <= on[0] <= on[-1] < width):
            raise NotAUser("a feature that is on is listed twice, or is not below the dimension")
        return [*on, width] if self._constant else on

    def stack(self, rows: list[Any]) -> npt.NDArray[np.float32] | SparseContexts:
        """(n, d) all of them."""
        width = (self._width or 1) + self._constant
        if not self._sparse:
            with np.errstate(over="ignore"):  # what overflows is refused
                return np.array(rows, np.float64).reshape(len(rows), width).astype(np.float32)
        ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        on = np.fromiter((i for row in rows for i in row), np.int32, int(ends[-1]))
        return SparseContexts(ends, on, width)
