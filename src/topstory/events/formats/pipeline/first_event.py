"""What the first event of an import decides for all that follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Shape:
    """Values by name: how many features a user has, whether there are times, and so on.

    What a row suggests counts only once the row has turned out to be an event, and is kept.

    >>> shape = Shape()
    >>> shape.first("width", 3), shape.drop()  # the row was bad
    (3, None)
    >>> shape.first("width", 2), shape.keep(), shape.first("width", 5)
    (2, None, 2)
    """

    def __init__(self, decided: Mapping[str, Any] | None = None) -> None:
        self.decided: dict[str, Any] = dict(decided or {})
        self._suggested: dict[str, Any] = {}

    def first(self, name: str, value: Any) -> Any:
        """What was decided; if nothing was, the value, to be decided when the row is kept."""
        if name in self.decided:
            return self.decided[name]
        return self._suggested.setdefault(name, value)

    def keep(self) -> None:
        """The row is an event: what it suggested is decided."""
        if self._suggested:
            self.decided.update(self._suggested)
            self._suggested = {}

    def drop(self) -> None:
        """The row is none."""
        self._suggested = {}
