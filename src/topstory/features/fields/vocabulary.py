"""The categories of a field: those with a column of their own, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec
import numpy as np
from sklearn.utils import murmurhash3_32

from topstory.events.columns.profiles import Kind
from topstory.features.fields.field import OTHER, FieldReport

MAX_COLUMNS = 50  # categories of a field with columns of their own
HASHED = 16  # columns that share the rest, where the rest is most of a field
HASHED_ABOVE = 0.5  # the share of rows that the rest must have


class Vocabulary(msgspec.Struct, frozen=True, dict=True):
    """Categories with support have a column each, as in scikit-learn's OneHotEncoder.

    The rest share one column, or several if most rows are of the rest: then a hash of the category
    chooses, as in scikit-learn's FeatureHasher, so their number need not be known.

    >>> words = Vocabulary.of({"fr": 60, "de": 39, "li": 1}, rows=100, support=0.05)
    >>> words.columns, words.place("de"), words.place("li"), words.place("never seen")
    (('de', 'fr', '(other)'), 0, 2, 2)
    """

    words: tuple[str, ...]
    rest: int  # columns for all other categories: 0, 1 or more
    support: float
    dropped: int  # categories without a column of their own

    @classmethod
    def of(cls, counts: Mapping[str, int], rows: int, support: float) -> Vocabulary:
        """From how many rows have each category."""
        order = sorted(counts, key=lambda word: (-counts[word], word))
        kept = [word for word in order if counts[word] >= support * rows][:MAX_COLUMNS]
        lost = sum(counts[word] for word in order) - sum(counts[word] for word in kept)
        dropped = len(order) - len(kept)
        rest = 0 if not dropped else min(HASHED, dropped) if lost > HASHED_ABOVE * rows else 1
        return cls(tuple(sorted(kept)), rest, float(support), dropped)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    @property
    def columns(self) -> tuple[str, ...]:
        """The categories, and names for the rest."""
        if self.rest <= 1:
            return (*self.words, *(OTHER,) * self.rest)
        return (*self.words, *(f"{OTHER[:-1]} {bucket})" for bucket in range(self.rest)))

    def place(self, word: str) -> int:
        """The column of a category; -1: none, since there were no others when it was fitted."""
        found = self._places.get(word)
        if found is not None:
            return found
        if self.rest == 0:
            return -1
        if self.rest == 1:
            return len(self.words)
        return len(self.words) + abs(int(murmurhash3_32(word, seed=0))) % self.rest

    def report(self, field: str, kind: Kind, encoding: str, missing: bool) -> FieldReport:
        """How many categories of a field have columns, and what became of the rest."""
        notes = []
        if self.dropped:
            where = "one column" if self.rest == 1 else f"{self.rest} columns, by a hash"
            rarer = f"{self.dropped:,} rarer categor{'y' if self.dropped == 1 else 'ies'}"
            notes.append(f"{rarer} and new ones share {where}")
        if missing:
            notes.append("missing is a category of its own")
        return FieldReport(
            field=field,
            many=kind == "categories",
            threshold=self.support,
            kept=len(self.words),
            dropped=self.dropped,
            kind=kind,
            encoding=encoding,
            note="; ".join(notes),
        )


def word_counts(
    codes: np.ndarray[tuple[int], np.dtype[np.int32]], words: list[str]
) -> dict[str, int]:
    """How often each word is there, by its code."""
    counts = np.bincount(codes, minlength=len(words))
    return {words[at]: int(counts[at]) for at in np.flatnonzero(counts)}
