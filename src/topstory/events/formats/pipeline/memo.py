"""A memo of parsed texts, for texts that repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

MAX_MEMO_BYTES = 1 << 24  # of text; beyond that the memo is cleared

Made = TypeVar("Made")


class Memo(dict[bytes, Made], Generic[Made]):
    """Text -> what `make` returns for it; exceptions are not remembered.

    >>> lengths = Memo(len)
    >>> lengths[b"abc"], lengths
    (3, {b'abc': 3})
    """

    def __init__(self, make: Callable[[bytes], Made]) -> None:
        super().__init__()
        self._make, self._bytes = make, 0

    def __missing__(self, text: bytes) -> Made:
        made = self._make(text)
        self._bytes += len(text) + 100
        if self._bytes > MAX_MEMO_BYTES:
            self.clear()
            self._bytes = len(text) + 100
        self[text] = made
        return made
