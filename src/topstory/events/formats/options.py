"""The options of a reader, checked: Python values, or text from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_YES = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


class ReaderOptions:
    """The options of one import.

    >>> chosen = ReaderOptions("vw", {"dimensions": "16"}, ["dimensions"])
    >>> chosen.whole("dimensions", 32, least=2)
    16
    >>> ReaderOptions("vw", {"dim": 16}, ["dimensions"])
    Traceback (most recent call last):
    ...
    ValueError: vw has no option 'dim'; it takes dimensions
    """

    def __init__(self, name: str, given: Mapping[str, Any], known: Mapping[str, str] | list[str]):
        self._name, self._given = name, given
        for option in given:
            if option not in known:
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                raise ValueError(f"{name} has no option {option!r}; {takes}")

    def whole(self, option: str, default: int, least: int, most: int = 1 << 16) -> int:
        """A whole number."""
        value = self._given.get(option, default)
        try:
            number = int(value)
        except (TypeError, ValueError):
            number = least - 1
        if not least <= number <= most or isinstance(value, float | bool):
            raise ValueError(
                f"{self._name}: {option} must be a whole number from {least} to {most}, "
                f"got {value!r}"
            )
        return number

    def flag(self, option: str) -> bool:
        """Yes or no; no if it is not given."""
        value = self._given.get(option, False)
        word = str(value).lower()
        if word not in _YES:
            raise ValueError(f"{self._name}: {option} must be yes or no, got {value!r}")
        return _YES[word]

    def choice(self, option: str, *choices: str) -> str:
        """One of `choices`; the first if it is not given."""
        value = str(self._given.get(option, choices[0]))
        if value not in choices:
            raise ValueError(
                f"{self._name}: {option} must be one of {', '.join(choices)}, got {value!r}"
            )
        return value

    def text(self, option: str) -> str | None:
        """Any text, such as a path; None if it is not given."""
        value = self._given.get(option)
        return None if value is None else str(value)
