"""The base of every model: state in arrays with a slot for each article, for kernels to work on."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog
from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.contexts import scratch
from topstory.kernels.event_features import Context
from topstory.models.contexts import Contexts
from topstory.models.input_range import MAX_MAGNITUDE, in_range
from topstory.models.priors.prior import Prior
from topstory.models.priors.sums import ArticleSums
from topstory.models.roster import Roster

ONE_SEGMENT: Slots = np.zeros(0, np.int32)  # in the place of users' segments: there is only one


class Model(ABC):
    """Estimates an article's payoff for a user, and how uncertain that is (the width).

    A subclass names its arrays and creates them. This class grows, resets and stores them.
    """

    name: ClassVar[str]
    per_article: tuple[str, ...]  # fields of the state with a row for each slot
    listed: tuple[str, ...] = ()  # fields that list slots, with room for all of them
    shared: tuple[str, ...] = ()  # fields that all articles share
    scored: tuple[str, ...]  # those that scoring reads
    inverses: tuple[tuple[str, str], ...] = ()  # fields of matrices, and of their inverses
    learns: ClassVar[bool] = True  # whether trials change it
    additive: ClassVar[bool] = True  # whether what it learned is a sum over trials
    segmented: ClassVar[bool] = False  # whether users may be in several segments
    prior: Prior | None = None  # where it starts, if not where the paper does
    event_features: int = 0  # the last numbers of a context that are of the article, not the user
    folds: int = 0  # of the log, whose sums the model is given; 0: it needs none

    def __init__(self) -> None:
        self.roster = Roster()
        self.dimension: int | None = None
        self.state: Any = None  # the arrays that kernels work on; `see` creates them
        self._blank: Any = None  # the state of one new article
        self._capacity = 0

    # -- for subclasses to define --

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The arguments that would create this model again, except functions."""

    @classmethod
    def from_stored(cls, parameters: Mapping[str, Any], callables: Mapping[str, Any]) -> Self:
        """The model that had these `parameters`, in this version or an earlier one."""
        return cls(**parameters, **callables)

    def callables(self) -> tuple[str, ...]:
        """The names of arguments that are functions: they are not stored, but passed to `load`."""
        return ()

    @abstractmethod
    def _fresh(self, capacity: int, dimension: int) -> NamedTuple:
        """The state of a model without trials, with room for `capacity` articles."""

    def _fits(self, article: str, features: Floats | None) -> None:
        """Raise ValueError if the model cannot take these features. Changes nothing."""

    def _admit(self, article: str, features: Floats | None) -> None:
        """Remember an article's features."""

    def _change(self, article: str, features: Floats) -> None:
        """Give a known article these features, which may be those that it has."""

    def _check(self, dimension: int) -> None:
        """Raise ValueError if a parameter does not fit contexts of this length."""

    def _place(self, slot: int, article: str) -> None:
        """Write what is known of the article into its slot of a new state."""

    def segment(self, user: Floats) -> int:
        """The user's segment."""
        return 0

    def segments(self, users: Contexts, start: int, stop: int) -> Slots:
        """The segments of the users start … stop − 1; an empty array if there is only one."""
        return ONE_SEGMENT

    def prepare(self, user: Floats, pool: Sequence[str]) -> None:
        """Called with a user and a pool before the pool is scored."""

    def prepare_trial(self, user: Floats, article: str) -> None:
        """Called with a user and the article shown, before that is learned."""

    def use_log_sums(self, slots: Slots, shows: Floats, payoff: Floats) -> None:
        """Called before a replay, if `folds` is not 0: what the whole log showed, and its payoffs.

        Both are (articles, folds); event t is in the fold t % folds.
        """

    @property
    def kernel_state(self) -> Any:
        """The state as kernels take it."""
        return self.state

    def expected(self, scores: Floats, widths: Floats) -> tuple[Floats, Floats]:
        """What kernels score by, and its widths, on the payoff's scale."""
        return scores, widths

    def check_payoffs(self, least: float, most: float) -> None:
        """Raise ValueError if the model does not take payoffs between these."""

    def room(self, dimension: int) -> Context:
        """A buffer for one context, in the form that the model's kernels take."""
        return scratch(dimension)

    def as_shown(self, x: Context, article: str, features: npt.ArrayLike) -> Context:
        """The context of a trial in which a known article had other features than it has now."""
        return x

    def factorise(self) -> bool:
        """Change to a form of the state that takes any trial; False if there is no other form."""
        return False

    def renew(self) -> bool:
        """Change the state so that it takes the next trial; False if it always does."""
        return False

    def features_of(self, article: str) -> Floats | None:
        """The article's features, if the model keeps them."""
        return None

    def restarted(self, **changes: Any) -> Self:
        """A model of this kind without trials and articles: with another prior, or ridge."""
        raise TypeError(f"the {self.name} model has no prior to change")

    def sums(self) -> ArticleSums:
        """What was learned, without the prior. It adds up over models and logs."""
        raise TypeError(f"what the {self.name} model learned is no sum over trials")

    def sums_of(self, log: EventLog, weights: Floats | None = None) -> ArticleSums:
        """What a log teaches, as `sums` has it: (n,) weights say how often each event counts."""
        raise TypeError(f"the {self.name} model learns event by event, not from sums")

    def take(self, sums: ArticleSums) -> None:
        """Know this instead of what was learned before; the articles in it must be known."""
        raise TypeError(f"what the {self.name} model learned is no sum over trials")

    def fade(self, factor: float) -> None:
        """Let what was learned count for less: `factor` times as much, and the prior for more."""
        if self.state is not None:
            self.take(self.sums().times(factor))

    @property
    def stored_version(self) -> int:
        """Of the format of policies: the lowest that has all of this model."""
        return 1

    @property
    def leans(self) -> bool:
        """Whether a user's segment is the largest number of the context."""
        return False

    @property
    def compiles(self) -> bool:
        """Whether compiled kernels alone can replay it."""
        return True

    # -- articles --

    def add(self, article: Any, features: npt.ArrayLike | None = None) -> int:
        """Add the article unless it is known. Returns its slot."""
        vector = self.check_article(article, features)
        self._admit(article, vector)
        if article in self.roster:
            return self.roster.slot(article)
        slot = self.roster.add(article)
        if self.state is not None:
            self._make_room()
            for field in self.per_article:
                getattr(self.state, field)[slot] = getattr(self._blank, field)[0]
            self._place(slot, article)
        return slot

    def edit(self, article: str, features: npt.ArrayLike | None) -> int:
        """Give a known article these features from now on, or add it. Returns its slot.

        What was learned stays as it is, the article's own coefficients too. None: as they are.
        """
        vector = self.check_article(article, features)
        if article not in self.roster:
            return self.add(article, vector)
        if vector is not None:
            self._change(article, vector)
        return self.roster.slot(article)

    def add_all(self, articles: Mapping[str, npt.ArrayLike | None]) -> Slots:
        """The slots of a log's articles, by id. New ones are added, known ones edited."""
        return np.array([self.edit(article, row) for article, row in articles.items()], np.int32)

    def check_article(self, article: Any, features: npt.ArrayLike | None) -> Floats | None:
        """The features as an array; ValueError if `edit` would not take the article."""
        if not isinstance(article, str) or not article:
            raise ValueError(f"an article id is a non-empty string, got {article!r}")
        vector = None if features is None else finite_vector(features, article)
        self._fits(article, vector)
        return vector

    def add_if_new(self, article: str) -> int:
        """The slot of an article, which is added unless it is known."""
        return self.roster.slot(article) if article in self.roster else self.add(article)

    def remove(self, article: str) -> None:
        """Forget the article and what was learned about it alone. Its slot will be reused."""
        if article not in self.roster:
            raise KeyError(f"article {article!r} is not known to this policy")
        self.roster.remove(article)

    def slots(self, pool: Sequence[str]) -> Slots:
        """The slots of a pool's articles. New articles are added."""
        if not len(pool):
            raise ValueError("the pool is empty: there is no article to choose")
        if len(set(pool)) < len(pool):
            twice = next(a for i, a in enumerate(pool) if a in pool[:i])
            raise ValueError(f"the pool lists article {twice!r} twice")
        return np.array([self.add_if_new(article) for article in pool], np.int32)

    # -- state --

    def use_event_features(self, count: int) -> None:
        """Contexts end with so many features of the article, which change with the event.

        A model without features of articles takes them for the user's, as any other number.
        """

    def check_event_features(self, count: int) -> None:
        """Raise ValueError if `use_event_features` could not do that."""

    def see(self, dimension: int, event_features: int | None = None) -> None:
        """Create the state for contexts with this many features, or check that it fits them.

        `event_features`: as `use_event_features` has it; None: as it is.
        """
        if event_features is not None:
            self.use_event_features(event_features)
        if dimension < 1:
            raise ValueError("a context needs at least one feature (the constant 1)")
        if self.dimension not in (None, dimension):
            raise ValueError(f"a context has {self.dimension} features here, got {dimension}")
        if self.state is None:
            self._check(dimension)
            self._begin(dimension)
            for slot, article in enumerate(self.roster.ids):
                if article is not None:
                    self._place(slot, article)

    def _begin(self, dimension: int) -> None:
        self.dimension = dimension
        self._blank = self._fresh(1, dimension)
        self._capacity = max(16, len(self.roster.ids))
        self.state = self._fresh(self._capacity, dimension)

    def _make_room(self) -> None:
        if len(self.roster.ids) > self._capacity:
            assert self.dimension is not None
            old = self.state
            self._capacity = max(2 * self._capacity, len(self.roster.ids))
            self.state = self._fresh(self._capacity, self.dimension)
            for field in (*self.per_article, *self.listed):
                rows = getattr(old, field)
                getattr(self.state, field)[: len(rows)] = rows
            self.state = self.state._replace(**{f: getattr(old, f) for f in self.shared})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The state as named arrays, for storing."""
        if self.state is None:
            return {}
        slots = len(self.roster.ids)
        rows = (*self.per_article, *self.listed)
        kept = {field: getattr(self.state, field)[:slots] for field in rows}
        return kept | {field: getattr(self.state, field) for field in self.shared}

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that depend on trials alone, to the bit: without those cached for scoring."""
        return self.arrays()

    def restore(
        self, ids: list[str | None], dimension: int | None, arrays: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        """Restore a stored state; ValueError if it does not fit."""
        self.roster = Roster(ids)
        if dimension is None:
            return
        self._begin(dimension)
        for field in (*self.per_article, *self.listed, *self.shared):
            target = getattr(self.state, field)
            target = target if field in self.shared else target[: len(ids)]
            stored = arrays.get(field)
            if stored is None or stored.shape != target.shape or stored.dtype != target.dtype:
                found = "nothing" if stored is None else f"{stored.dtype} {stored.shape}"
                raise ValueError(f"{field}: expected {target.dtype} {target.shape}, found {found}")
            if np.isnan(stored).any():
                raise ValueError(f"{field}: not all of it is numbers")
            target[...] = stored

    # -- scoring elsewhere --

    def ready(self, slots: Slots) -> None:
        """Bring what scoring reads of these articles up to date."""

    def scored_rows(self, slots: Slots) -> dict[str, Floats]:
        """What scoring reads: the arrays `scored`, of these articles a row for each.

        It follows from what was learned alone, to the bit, whatever was scored before.
        """
        return {
            field: getattr(self.state, field)
            if field in self.shared
            else getattr(self.state, field)[slots]
            for field in self.scored
        }

    def score_from(self, dimension: int, arrays: Mapping[str, Floats]) -> None:
        """Score from these arrays: the `scored` ones, those of articles with a row for each.

        They belong to a model in another process, which learns. This model must not.
        """
        self.dimension = dimension
        self._capacity = len(self.roster.ids)
        self.state = self._fresh(self._capacity, dimension)._replace(**arrays)

    def copy(self) -> Self:
        """An independent copy."""
        return deepcopy(self)

    def drift(self) -> float:
        """The rounding error of the state: the largest entry of |A·A⁻¹ − I|; 0 if exact.

        The factored form of a linear model has no inverses, and is exact.
        """
        arrays = self.arrays()
        found = [
            residual(A, A_inverse)  # one at a time: all at once would double the memory
            for field, inverse in self.inverses
            if field in arrays
            for A, A_inverse in zip(arrays[field], arrays[inverse], strict=True)
        ]
        return float(np.max(found, initial=0.0))  # NaN if one of them is


def residual(A: Floats, inverse: Floats) -> float:
    """The largest entry of |A·A⁻¹ − I|."""
    return float(np.abs(A @ inverse - np.eye(len(A))).max())


def finite_vector(values: npt.ArrayLike, article: str) -> Floats:
    """An article's features or offsets as an array, checked."""
    vector = np.array(values, np.float64)  # a copy: the caller may change the original
    if vector.ndim != 1 or not in_range(vector):
        raise ValueError(
            f"article {article!r} needs a vector of finite numbers, at most {MAX_MAGNITUDE:g}, "
            f"got {values!r}"
        )
    return vector
