"""What has been made of a text, kept at hand in case the text comes again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

HELD = 1 << 24  # bytes of text; beyond, everything is forgotten and made anew

Made = TypeVar("Made")


class Remembered(dict[bytes, Made], Generic[Made]):
    """Text -> what `make` makes of it; what it raises is not remembered.

    >>> lengths = Remembered(len)
    >>> lengths[b"abc"], lengths
    (3, {b'abc': 3})
    """

    def __init__(self, make: Callable[[bytes], Made]) -> None:
        super().__init__()
        self._make, self._held = make, 0

    def __missing__(self, text: bytes) -> Made:
        made = self._make(text)
        self._held += len(text) + 100
        if self._held > HELD:
            self.clear()
            self._held = len(text) + 100
        self[text] = made
        return made
