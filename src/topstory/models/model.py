"""What every model is: state in arrays, one slot for each article, that the kernels work on."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.contexts import Dense, scratch
from topstory.models.contexts import Contexts
from topstory.models.roster import Roster


class Model(ABC):
    """What payoff to expect of an article for a user (`estimate`), and how sure that is (`width`).

    A subclass names its arrays and makes them; growing, forgetting and storing them is done here.
    """

    name: ClassVar[str]
    per_article: ClassVar[tuple[str, ...]]  # fields of the state with one row for each slot
    listed: ClassVar[tuple[str, ...]] = ()  # lists of slots, with room for all of them
    shared: ClassVar[tuple[str, ...]] = ()  # fields that all articles share
    scored: ClassVar[tuple[str, ...]]  # those of `per_article` that scoring reads, and no others

    def __init__(self) -> None:
        self.roster = Roster()
        self.dimension: int | None = None
        self._state: Any = None
        self._blank: Any = None  # the state of one article that nothing is known of
        self._capacity = 0

    # -- what a subclass says --

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The arguments that make this model again, callables aside."""

    def callables(self) -> tuple[str, ...]:
        """The names of arguments that were functions: not stored, to be given again on loading."""
        return ()

    @abstractmethod
    def _fresh(self, capacity: int, dimension: int) -> NamedTuple:
        """The state of a model that has seen nothing, with room for `capacity` articles."""

    def _fits(self, article: str, features: Floats | None) -> None:
        """Refuse features that the model cannot take; nothing is changed."""

    def _admit(self, article: str, features: Floats | None) -> None:
        """Note what is said of an article."""

    def _check(self, dimension: int) -> None:
        """Refuse what does not fit contexts of this length, before any state is made."""

    def _place(self, slot: int, article: str) -> None:
        """Write what is known of the article into its slot of a fresh state."""

    def segment(self, user: Floats) -> int:
        """Which segment the user is in."""
        return 0

    def segments(self, users: Contexts, start: int, stop: int) -> Slots:
        """The segments of the users start … stop − 1, or nothing where there is but one."""
        return np.zeros(0, np.int32)

    def prepare(self, user: Floats, pool: Sequence[str]) -> None:
        """Whatever must be known of a user before the pool is scored for him."""

    def look_back(self, slots: Slots, shows: Floats, payoff: Floats) -> None:
        """Told how often a whole log showed each article, and what it paid."""

    def room(self, dimension: int) -> Dense:
        """Room for one context, in the form that suits the model's kernels."""
        return scratch(dimension)

    @property
    def compiles(self) -> bool:
        """Whether kernels alone can run it over a log."""
        return True

    # -- articles --

    def add(self, article: Any, features: npt.ArrayLike | None = None) -> int:
        """Make the article known, if it is not; its slot."""
        vector = self.check_article(article, features)
        self._admit(article, vector)
        if article in self.roster:
            return self.roster.slot(article)
        slot = self.roster.add(article)
        if self._state is not None:
            self._make_room()
            for field in self.per_article:
                getattr(self._state, field)[slot] = getattr(self._blank, field)[0]
            self._place(slot, article)
        return slot

    def check_article(self, article: Any, features: npt.ArrayLike | None) -> Floats | None:
        """The features that `add` would take; ValueError if it would refuse the article."""
        if not isinstance(article, str) or not article:
            raise ValueError(f"an article id is a non-empty string, got {article!r}")
        vector = None if features is None else finite_vector(features, article)
        self._fits(article, vector)
        return vector

    def add_if_new(self, article: str) -> int:
        """The slot of an article, which is added if it was not known."""
        return self.roster.slot(article) if article in self.roster else self.add(article)

    def remove(self, article: str) -> None:
        """Forget the article and what it learned of its own; its slot will be used again."""
        if article not in self.roster:
            raise KeyError(f"article {article!r} is not known to this policy")
        self.roster.remove(article)

    def slots(self, pool: Sequence[str]) -> Slots:
        """The slots of a pool's articles; those not seen before are added."""
        if not len(pool):
            raise ValueError("the pool is empty: there is no article to choose")
        if len(set(pool)) < len(pool):
            twice = next(a for i, a in enumerate(pool) if a in pool[:i])
            raise ValueError(f"the pool lists article {twice!r} twice")
        return np.array([self.add_if_new(article) for article in pool], np.int32)

    # -- state --

    @property
    def state(self) -> Any:
        """The arrays that kernels work on; `see` makes them."""
        if self._state is None:
            raise ValueError("the model has not seen a context yet")
        return self._state

    def see(self, dimension: int) -> None:
        """Contexts have this many features: make the state, or check that it fits."""
        if dimension < 1:
            raise ValueError("a context needs at least one feature (the constant 1)")
        if self.dimension not in (None, dimension):
            raise ValueError(f"a context has {self.dimension} features here, got {dimension}")
        if self._state is None:
            self._check(dimension)
            self._begin(dimension)
            for slot, article in enumerate(self.roster.ids):
                if article is not None:
                    self._place(slot, article)

    def _begin(self, dimension: int) -> None:
        self.dimension = dimension
        self._blank = self._fresh(1, dimension)
        self._capacity = max(16, len(self.roster.ids))
        self._state = self._fresh(self._capacity, dimension)

    def _make_room(self) -> None:
        if len(self.roster.ids) > self._capacity:
            assert self.dimension is not None
            old = self._state
            self._capacity = max(2 * self._capacity, len(self.roster.ids))
            self._state = self._fresh(self._capacity, self.dimension)
            for field in (*self.per_article, *self.listed):
                rows = getattr(old, field)
                getattr(self._state, field)[: len(rows)] = rows
            self._state = self._state._replace(**{f: getattr(old, f) for f in self.shared})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The state as named arrays, to be stored."""
        if self._state is None:
            return {}
        slots = len(self.roster.ids)
        rows = (*self.per_article, *self.listed)
        kept = {field: getattr(self._state, field)[:slots] for field in rows}
        return kept | {field: getattr(self._state, field) for field in self.shared}

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        """Those arrays that trials alone decide, to the bit: not what is kept ready for scoring."""
        return self.arrays()

    def restore(
        self, ids: list[str | None], dimension: int | None, arrays: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        """Take over a stored state; ValueError if it does not fit."""
        self.roster = Roster(ids)
        if dimension is None:
            return
        self._begin(dimension)
        for field in (*self.per_article, *self.listed, *self.shared):
            target = getattr(self._state, field)
            target = target if field in self.shared else target[: len(ids)]
            stored = arrays.get(field)
            if stored is None or stored.shape != target.shape or stored.dtype != target.dtype:
                found = "nothing" if stored is None else f"{stored.dtype} {stored.shape}"
                raise ValueError(f"{field}: expected {target.dtype} {target.shape}, found {found}")
            target[...] = stored

    # -- scoring elsewhere --

    def ready(self, slots: Slots) -> None:
        """Bring what scoring reads of these articles up to date."""

    def score_from(self, dimension: int, arrays: Mapping[str, Floats]) -> None:
        """Score from these arrays, the `scored` ones, a row for each article of the roster.

        Whoever has the state itself writes them; this model must not learn.
        """
        self.dimension = dimension
        self._capacity = len(self.roster.ids)
        self._state = self._fresh(self._capacity, dimension)._replace(**arrays)

    def copy(self) -> Self:
        """A model of its own in the same state."""
        return deepcopy(self)

    def drift(self) -> float:
        """How far rounding has carried the state: the largest entry of |A·A⁻¹ − I|; 0 if exact."""
        return 0.0


def finite_vector(values: npt.ArrayLike, article: str) -> Floats:
    """An article's features or offsets as an array, checked."""
    vector = np.array(values, np.float64)  # a copy: the caller may go on using his own
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise ValueError(f"article {article!r} needs a vector of finite numbers, got {values!r}")
    return vector
