"""The actions of Vowpal Wabbit's events: described when first met, and remembered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from topstory.events.articles import ArticleTable
from topstory.events.readers.encodings import Encoding
from topstory.events.readers.gathering import Pool
from topstory.events.readers.named_features import Named

CHANGED = "an action has other features than when its id was first seen: the first are kept"


class Actions:
    """Every action met in an import, with the features it had when it was first met.

    >>> from topstory.events.readers.encodings import HashEncoding
    >>> actions = Actions(HashEncoding(3))
    >>> actions.meet("a", [("topic=news", 1.0)]), actions.meet("a", [("topic=arts", 1.0)])
    (True, False)
    >>> actions.table([("a",)]).features
    array([[ 0., -1.,  1.]])
    """

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._features: dict[str, npt.NDArray[np.float64] | None] = {}

    def meet(self, key: str, features: Sequence[Named]) -> bool:
        """Remember an action; False if it was known with other features. Raises Unfit."""
        row = self._encoding.article(features)
        known = self._features.setdefault(key, row)
        # Ignored: array_equal is not told that known is an array by now.
        return known is row or bool(known is not None and np.array_equal(known, row))  # type: ignore[arg-type]

    def table(self, pools: Iterable[Pool]) -> ArticleTable:
        """The articles of some pools."""
        ids = tuple(dict.fromkeys(key for pool in pools for key in pool))
        rows = [row for row in map(self._features.__getitem__, ids) if row is not None]
        return ArticleTable(ids, np.array(rows) if rows else None)
