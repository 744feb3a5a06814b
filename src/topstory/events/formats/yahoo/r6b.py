"""Yahoo! Front Page Today Module, version 2 (R6B, 2011): binary users, bare articles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events.columns.contexts import SparseContexts
from topstory.events.formats.faults import Faults
from topstory.events.formats.reader import Progress
from topstory.events.formats.yahoo.pools import STRUCTURE, InvalidLine, ListedArticle
from topstory.events.formats.yahoo.scan import CONSTANT, LineScanner
from topstory.events.log import EventLog
from topstory.kernels.parsing.yahoo import scan_r6b

D = 136  # features of a user: 2 to 136, and 1, the constant, which comes last here
MEAN_FEATURES_ON = 32  # features on in a user, of all that a batch has room for

FEATURES = "user features are not different whole numbers from 1 to 136"


class R6BReader:
    """Reads `time article click |user 1 11 13 16 |id-552077 |id-555224 …`."""

    name = "r6b"
    options: Mapping[str, str] = {}
    parallel = False

    def read(
        self,
        files: Sequence[Path],
        faults: Faults,
        progress: Progress,
        workers: int = 1,
        **options: Any,
    ) -> Iterator[tuple[Path, EventLog]]:
        """Batches of events with sparse contexts; feature k is at k - 2, the constant at 135."""
        return _R6BScanner().read(files, faults, progress)


class _R6BScanner(LineScanner):
    def __init__(self) -> None:
        super().__init__()
        self.indptr = np.zeros(len(self.pool) + 1, np.int64)
        self.indices = np.empty(len(self.pool) * MEAN_FEATURES_ON, np.int32)

    def scan(self, text: npt.NDArray[np.uint8]) -> int:
        return scan_r6b(
            text,
            len(text),
            *(self.state, self.times, self.pool, self.position, self.payoff),
            *(self.indptr, self.indices, D),
            *self.pools.known,
        )

    def user(self, words: list[bytes], event: int) -> None:
        on = {int(word) for word in words if len(word) <= 3 and word.isdigit()}
        if len(on) < len(words) or not all(1 <= feature <= D for feature in on):
            raise InvalidLine(FEATURES)
        if 1 not in on:
            raise InvalidLine(CONSTANT)
        first = self.indptr[event]
        self.indptr[event + 1] = first + len(on)
        self.indices[first : first + len(on)] = sorted((feature - 2) % D for feature in on)

    def article(self, key: str, words: list[bytes]) -> ListedArticle:
        if words:
            raise InvalidLine(STRUCTURE)
        return ListedArticle(key, None)

    def contexts(self, events: int) -> SparseContexts:
        last = self.indptr[events]
        return SparseContexts(self.indptr[: events + 1].copy(), self.indices[:last].copy(), D)
