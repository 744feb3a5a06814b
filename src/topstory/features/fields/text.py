"""Text: which words it has, in a few numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from threadpoolctl import threadpool_limits

from topstory.features.fields.field import Cell, Cells, FieldReport, Unknown, wrong
from topstory.kernels.bilinear import linear_rows
from topstory.kernels.compilation import Floats

MAX_WORDS = 5_000
MAX_SAMPLE = 100_000  # texts to learn the words from
COMPONENTS = 10
TOKEN = re.compile(r"(?u)\b\w\w+\b")  # TfidfVectorizer's own


class TextField(msgspec.Struct, frozen=True, dict=True, tag="text", tag_field="encoding"):
    """Latent semantic analysis: tf-idf of the words, a truncated SVD, unit length.

    Fitted by scikit-learn's TfidfVectorizer and TruncatedSVD. A text without a known word is 0.

    >>> import pyarrow as pa
    >>> column = pa.array(["rain in Rome", "sun in Rome", "rain and wind", "goal and goal"])
    >>> field = TextField.fit("title", column, components=2)
    >>> len(field.columns), field.one("RAIN, in rome!", {}) == field.one("rain in Rome", {})
    (2, True)
    >>> field.one("Schnee", {})
    ()
    """

    name: str
    words: tuple[str, ...]
    idf: npt.NDArray[np.float64]  # (words,)
    components: npt.NDArray[np.float64]  # (words, columns)
    explained: float  # share of the variance
    kind: Literal["text"] = "text"

    @classmethod
    def fit(
        cls, name: str, column: Any, components: int = COMPONENTS, seed: int = 0
    ) -> TextField | None:
        """Learn the words and the components; None if there are fewer than two words."""
        texts = column.drop_null().to_pylist()
        texts = texts[:: -(-len(texts) // MAX_SAMPLE) or 1]
        common = 2 if len(texts) >= 100 else 1  # a word of one text alone says nothing of others
        vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=MAX_WORDS, min_df=common)
        try:
            found = vectorizer.fit_transform(texts)
        except ValueError:  # no words
            return None
        size = min(components, found.shape[1] - 1, found.shape[0] - 1)
        if size < 1:
            return None
        svd = TruncatedSVD(size, random_state=seed)
        with threadpool_limits(1):  # the same sums, in the same order, on any machine
            svd.fit(found)
        explained = float(svd.explained_variance_ratio_.sum())
        words = tuple(vectorizer.get_feature_names_out().tolist())
        return cls(name, words, vectorizer.idf_, np.ascontiguousarray(svd.components_.T), explained)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    @cached_property
    def _weights(self) -> list[float]:
        return [float(weight) for weight in self.idf]

    @cached_property
    def _no_bias(self) -> Floats:
        return np.zeros(self.components.shape[1])

    @property
    def columns(self) -> tuple[str, ...]:
        """Numbers without meanings of their own."""
        return tuple(f"component {place}" for place in range(self.components.shape[1]))

    def one(self, value: Any, unknown: Unknown) -> tuple[Cell, ...]:
        """A cell for each component."""
        if value is None:
            return ()
        if not isinstance(value, str):
            raise wrong(self.name, "text", value)
        found: list[float] = self._projected([value])[0].tolist()
        length = math.sqrt(sum([each * each for each in found]))
        return tuple([(place, each / length) for place, each in enumerate(found)] if length else ())

    def many(self, column: Any, unknown: Unknown) -> Cells:
        """The same of each row."""
        found = self._projected(["" if text is None else text for text in column.to_pylist()])
        width = found.shape[1]
        squares = np.zeros(len(found))
        for place in range(width):  # in the order in which one text's are added up
            squares += found[:, place] * found[:, place]
        rows = np.flatnonzero(squares)
        columns = np.tile(np.arange(width, dtype=np.int32), len(rows))
        unit = found[rows] / np.sqrt(squares[rows])[:, None]
        return np.repeat(rows, width), columns, unit.ravel()

    def _projected(self, texts: Sequence[str]) -> Floats:
        """(texts, columns) of any length."""
        starts, indices, values = [0], [], []
        known, weights = self._places, self._weights
        for text in texts:
            counts: dict[int, int] = {}
            for word in TOKEN.findall(text.lower()):
                place = known.get(word)
                if place is not None:
                    counts[place] = counts.get(place, 0) + 1
            for place in sorted(counts):
                indices.append(place)
                values.append((1.0 + math.log(counts[place])) * weights[place])
            starts.append(len(indices))
        width = self.components.shape[1]
        found: Floats = np.empty((len(texts), width))
        linear_rows(
            np.array(starts, np.int64),
            np.array(indices, np.int32),
            np.array(values, np.float32),
            self.components,
            self._no_bias,
            found,
        )
        return found

    def report(self) -> FieldReport:
        """How many words make how many numbers."""
        size = self.components.shape[1]
        how = f"{len(self.words):,} words → {size} components"
        note = f"the components keep {self.explained:.0%} of what texts differ in"
        return FieldReport(self.name, False, 0.0, size, 0, self.kind, how, note)
