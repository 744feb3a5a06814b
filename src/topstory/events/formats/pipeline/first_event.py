"""Facts that the first event of an import fixes for all later ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class FirstEvent:
    """Values by name: how many features a user has, whether events have times, and so on.

    What a row suggests is fixed only once the row has turned out to be an event.

    >>> first_event = FirstEvent()
    >>> first_event.setdefault("width", 3), first_event.drop()  # the row was bad
    (3, None)
    >>> first_event.setdefault("width", 2), first_event.keep(), first_event.setdefault("width", 5)
    (2, None, 2)
    """

    def __init__(self, decided: Mapping[str, Any] | None = None) -> None:
        self.decided: dict[str, Any] = dict(decided or {})
        self._suggested: dict[str, Any] = {}

    def setdefault(self, name: str, value: Any) -> Any:
        """The fixed value; if there is none yet, `value`, to be fixed when the row is kept."""
        if name in self.decided:
            return self.decided[name]
        return self._suggested.setdefault(name, value)

    def keep(self) -> None:
        """The row is an event: fix what it suggested."""
        if self._suggested:
            self.decided.update(self._suggested)
            self._suggested = {}

    def drop(self) -> None:
        """The row is not an event: forget what it suggested."""
        self._suggested = {}
