"""What changes z in hybrid models: features that an event has a say in, and edits of articles."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from topstory.kernels.compilation import Floats
from topstory.kernels.event_features import Context, Featured, featured_scratch
from topstory.kernels.models.factored import MAX_GENERAL_CONDITION, add_own
from topstory.kernels.models.hybrid_forms import ACTIVE, CURRENT
from topstory.models.hybrid.crossings import Fields, row_of, with_event
from topstory.models.input_range import ScaleError
from topstory.models.linear import LinearModel
from topstory.models.model import finite_vector


class ChangingZ(LinearModel):
    """z = x ⊗ f, where f ends with numbers of the event, or is not that of earlier trials.

    Such a model has the general form of a state: nothing leads back from it.
    """

    ridge: float
    _features: dict[str, Floats]
    _count: int  # of an article's own features; 0 until the first one is known
    general: bool  # whether the state has the general form
    _rows: int  # of K

    def _begin_with(self, event_features: int) -> None:
        self.event_features = 0 if self.prior is None else self.prior.event_features
        self._features, self._count = {}, 0
        self.general, self._rows = False, 1
        self.use_event_features(event_features or self.event_features)

    def use_event_features(self, count: int) -> None:
        """From the first context on, so many numbers of each belong to f; ValueError if not."""
        self.check_event_features(count)
        self.event_features = count
        if count and not self.general:
            self.general = True
            self._name_general()

    def check_event_features(self, count: int) -> None:
        """ValueError if contexts were seen, or a prior learned, with another number."""
        if count == self.event_features:
            return
        begun = self.event_features or self.dimension is not None or self.prior is not None
        if begun or index(count) < 0:
            raise ValueError(
                f"{count} numbers of these contexts are features of the article that change with "
                f"the event, but the policy was made for contexts with {self.event_features}; "
                "train it on a log of the same feature model"
            )

    @property
    def own_dimension(self) -> int:
        """Numbers of x: a context's, without those that belong to f."""
        assert self.dimension is not None
        return self.dimension - self.event_features

    @property
    def feature_count(self) -> int:
        """Numbers of f: the article's own, and the event's."""
        return (self._count or 1) + self.event_features

    def _check(self, dimension: int) -> None:
        super()._check(dimension)
        if dimension <= self.event_features:
            raise ValueError(
                f"a context has {self.event_features} features of the event and the constant here, "
                f"so more than {self.event_features} numbers; got {dimension}"
            )

    def room(self, dimension: int) -> Context:
        """With what the event adds to f apart, if it adds something."""
        if not self.event_features:
            return super().room(dimension)
        return featured_scratch(dimension, self.event_features, unrolled=not self.factored)

    def _change(self, article: str, features: Floats) -> None:
        """From now on its z is x ⊗ these. Its trials stay what they were, with the z that they had.

        So A, B, b and what all articles share stay, and with them β and its own θ_a = A⁻¹(b − Bβ):
        its estimate changes by xᵀβ(f' − f). Its width is wider where β is not known as well.
        """
        known = self._features[article]
        if np.array_equal(known, features):
            return
        slot = self.roster.slot(article)
        if self.state is not None and self._has_trials(slot):
            self._cross(article, slot, known, features)
        self._features[article] = features
        if self.state is None:
            return
        self.state.features[slot] = features
        if not self.factored:
            self._drop_form(slot)
            self.state.left_at[slot] = -1

    def _cross(self, article: str, slot: int, known: Floats, features: Floats) -> None:
        """The article's trials had z = x ⊗ `known`, and later ones have x ⊗ `features`."""
        A, row = self._matrices()[slot], self._own_row(article, slot, known, features)
        state, change = self.state, features - known
        state.K[row] += np.kron(A, change)
        if not self.factored:
            state.G[row] += np.kron(np.eye(len(A)), change)
        moved = with_event(change[np.newaxis], self.event_features)
        add_own(state.departed, state.b[slot : slot + 1], moved, -1.0)
        state.reach[slot] = max(state.reach[slot], known @ known)

    def _own_row(self, article: str, slot: int, known: Floats, features: Floats) -> int:
        """The article's row of K, for trials with these features and with those."""
        self._check_scale(article, slot, known, features)
        self._generalise()
        self.state, row = row_of(self.state, slot)
        self._rows = len(self.state.K)
        return row

    def as_shown(self, x: Context, article: str, features: npt.ArrayLike) -> Context:
        """With what f was beyond the article's present features."""
        then = finite_vector(features, article)
        self._fits(article, then)
        known = self._features[article]
        if np.array_equal(known, then):
            return x
        self._own_row(article, self.roster.slot(article), known, then)
        d, empty = len(x.values), np.zeros(0)
        event = x.event if isinstance(x, Featured) else empty
        wide = np.zeros((2, d * (1 + len(event))))
        return Featured(x.values, (), np.zeros(d), event, then - known, wide)

    def _check_scale(self, article: str, slot: int, known: Floats, features: Floats) -> None:
        """ScaleError if the article's trials are too large for the general form."""
        if not self.factored:
            return
        far = max(known @ known, features @ features)
        reach = 1 / self.ridge + far / self.state.shared_ridge
        A = self.state.L[slot] @ self.state.L[slot].T
        if (np.trace(A) - len(A) * self.ridge) * reach > MAX_GENERAL_CONDITION:
            raise ScaleError(self.name, f"other features of article {article!r}")

    def check_article(self, article: Any, features: npt.ArrayLike | None) -> Floats | None:
        """As in every model; and whether arithmetic holds an edit."""
        vector = super().check_article(article, features)
        known = self._features.get(article)
        if known is None or vector is None or self.state is None:
            return vector
        if not np.array_equal(known, vector):
            self._check_scale(article, self.roster.slot(article), known, vector)
        return vector

    def _has_trials(self, slot: int) -> bool:
        state = self.state
        kept, start = (state.L, np.sqrt(self.ridge)) if self.factored else (state.A, self.ridge)
        return bool(state.b[slot].any() or (kept[slot] != start * np.eye(len(kept[slot]))).any())

    def _generalise(self) -> None:
        """Change to the general form, for a z that is not x ⊗ f for the same f in all trials."""
        if self.general:
            return
        old, self.general = self.state, True
        if self.factored:
            self._name_factors()
            return
        self._name_general()
        self.state = self._fresh(self._capacity, self.dimension or 0)
        kept = {
            name: getattr(old, name)
            for name in (*self.per_article, *self.listed, *self.shared)
            if name not in (*Fields._fields, "G")
        }
        self.state = self.state._replace(**kept)
        self._blank = self._fresh(1, self.dimension or 0)

    def _drop_form(self, slot: int) -> None:
        """Keep an article's S and v up to date no longer."""
        state = self.state
        for field, place in (("active", ACTIVE), ("current", CURRENT)):
            listed = getattr(state, field)
            count = int(state.clock[place])
            kept = listed[:count][listed[:count] != slot]
            listed[: len(kept)] = kept
            state.clock[place] = len(kept)

    def _use_inverses(self) -> None:
        super()._use_inverses()
        if self.general:
            self._name_general()

    def _name_general(self) -> None:
        self.per_article = (*type(self).per_article, *self._crossed, *self._solved)
        self.shared = ("K", "G", *type(self).shared)
        if self.adapts:
            self.shared = (*self.shared, "tally")

    @property
    def _crossed(self) -> tuple[str, ...]:
        """Fields about z with a row for each article; without features of the event, no B_e."""
        return ("products", "edited", "reach") if self.event_features else ("edited", "reach")

    @property
    def _solved(self) -> tuple[str, ...]:
        return ("event",) if self.event_features else ()

    @property
    def stored_version(self) -> int:
        """2 in the general form, which earlier versions of topstory would misread."""
        return 2 if self.general else 1

    def _check_places(self, arrays: Mapping[str, npt.NDArray[Any]], slots: int) -> None:
        """ValueError if stored places are not in the arrays: kernels would follow them outside."""
        counts = arrays.get("clock", np.zeros(4, np.int64))
        known = {name: arrays.get(name, np.zeros(0)) for name in ("active", "current", "edited")}
        ends = {"active": slots, "current": slots, "edited": len(arrays.get("K", "-"))}
        for name, places in known.items():
            if not ((places >= 0) & (places < ends[name]) & (places == np.floor(places))).all():
                raise ValueError(f"{name}: not all of it is places")
        most = np.array([2**62, slots, slots, 2**62])
        if counts.shape != (4,) or not ((counts >= 0) & (counts <= most)).all():
            raise ValueError("clock: not all of it is counts")

    def _find_form(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take the general form if the arrays are of it."""
        self.general = self.event_features > 0 or "K" in arrays
        if self.general:
            self._name_general()
            self._rows = len(arrays.get("K", "-"))
