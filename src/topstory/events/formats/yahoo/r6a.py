"""Yahoo! Front Page Today Module, version 1 (R6A, 2009): the log of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.events.formats.faults import Faults
from topstory.events.formats.reader import Progress
from topstory.events.formats.yahoo.pools import InvalidLine, ListedArticle
from topstory.events.formats.yahoo.scan import CONSTANT, NUMBER, LineScanner, number
from topstory.events.log import EventLog
from topstory.kernels.parsing.yahoo import scan_r6a

D = 6  # features of users and of articles: 2 to 6, and 1, the constant, which comes last here

FEATURES = "user features are missing or given twice"
ARTICLE_FEATURES = "an article has a feature that is not 1 to 6, or has it twice"


class R6AReader:
    """Reads `time article click |user 2:… 3:… 4:… 5:… 6:… 1:1 |article 2:… … 1:1 |article …`."""

    name = "r6a"
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
        """Batches of events; users and articles both have six features, the constant last."""
        return _R6AScanner().read(files, faults, progress)


class _R6AScanner(LineScanner):
    def __init__(self) -> None:
        super().__init__()
        self.users = np.empty((len(self.pool), D), np.float32)

    def scan(self, text: npt.NDArray[np.uint8]) -> int:
        return scan_r6a(
            text,
            len(text),
            *(self.state, self.times, self.pool, self.position, self.payoff, self.users),
            *self.pools.known,
        )

    def user(self, words: list[bytes], event: int) -> None:
        features = _features(words, FEATURES)
        if None in features:
            raise InvalidLine(FEATURES)
        self.users[event] = features

    def article(self, key: str, words: list[bytes]) -> ListedArticle:
        return ListedArticle(key, tuple(_features(words, ARTICLE_FEATURES)))

    def contexts(self, events: int) -> npt.NDArray[np.float32]:
        return self.users[:events].copy()


def _features(words: list[bytes], wrong: str) -> list[float | None]:
    """Features 2 to 6 and the constant; None where one is not given."""
    features: list[float | None] = [None] * D
    for word in words:
        name, colon, value = word.partition(b":")
        if not colon:
            raise InvalidLine(NUMBER)
        if name not in (b"1", b"2", b"3", b"4", b"5", b"6"):
            raise InvalidLine(wrong)
        place = int(name) - 2  # that of feature 1 is -1: the last
        if features[place] is not None:
            raise InvalidLine(wrong)
        features[place] = number(value)
    if features[-1] != 1.0:
        raise InvalidLine(CONSTANT)
    return features
