"""What the two linear models have in common: a ridge regression for each article."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog
from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.contexts import Dense
from topstory.kernels.event_features import Context
from topstory.kernels.models.factored import convert, fade
from topstory.kernels.models.tally import PAYOFF, SQUARES, TRIALS, UNTIL_CHECK
from topstory.models.input_range import MAX_RIDGE, MIN_RIDGE, NotFiniteError, ScaleError
from topstory.models.model import Model
from topstory.models.priors.prior import Prior
from topstory.models.priors.sums import ArticleSums, sum_articles
from topstory.models.priors.weighing import new_tally, tally_of

AUTO = "auto"
PAPER = "paper"  # the ridge of the paper, by name
PAPER_RIDGE = 1.0
MIN_ARTICLES, MIN_TRIALS = 20, 50  # from which `auto` finds a ridge


class LinearModel(Model):
    """Keeps inverses while they are exact, and factors from then on: the same model either way.

    The ordinary form is the faster one. `factorise` is called before a trial that it cannot take,
    and nothing leads back.
    """

    factored = False

    def __init__(self, ridge: float | str | None, prior: Prior | None) -> None:
        super().__init__()
        if ridge == PAPER:
            if prior is not None:
                raise ValueError(
                    "ridge='paper' starts as the paper does, without a prior; give either it, or "
                    "prior"
                )
            ridge = PAPER_RIDGE
        if isinstance(ridge, str) and ridge != AUTO:
            raise ValueError(f"ridge must be a number, {AUTO!r} or {PAPER!r}, got {ridge!r}")
        if ridge == AUTO and prior is not None:
            raise ValueError("ridge='auto' finds a prior by itself; give either it, or prior")
        self.finds_ridge = ridge == AUTO
        self.given_ridge = None if ridge in (None, AUTO) else prior_weight("ridge", ridge)
        self.prior = prior
        self.weight = 1.0  # κ: the share of the prior that is used
        if self.adapts:
            self.shared = (*self.shared, "tally")

    @property
    def adapts(self) -> bool:
        """Whether what it sees changes its prior."""
        return self.prior is not None or self.finds_ridge

    @abstractmethod
    def _name_factors(self) -> None:
        """Name the fields of the factored form."""

    @abstractmethod
    def own_start(self) -> tuple[Floats, Floats]:
        """A and b of an article without trials."""

    @abstractmethod
    def _fill(self, slots: Slots, sums: ArticleSums) -> None:
        """Write what was learned about the articles in these slots into a new state."""

    @abstractmethod
    def _invert(self, slots: Slots) -> None:
        """Write the inverses that the ordinary form keeps of it."""

    @abstractmethod
    def _reweigh(self, sums: ArticleSums) -> None:
        """Choose how much of the prior to use, or find the ridge; the state is filled anew."""

    # -- what was learned, without the prior --

    def restarted(self, **changes: Any) -> Self:
        """A model without trials: with another prior, whose ridges then hold, or other ridges."""
        kept = {} if "prior" in changes else self.parameters()
        if "prior" not in changes and not self.finds_ridge and self.prior is not None:
            kept["prior"] = self.prior
        return type(self)(**(kept | changes))

    def sums(self) -> ArticleSums:
        """What was learned, without the prior: the same whatever that is."""
        slots = np.array([s for s, a in enumerate(self.roster.ids) if a is not None], np.int64)
        ids = tuple(a for a in self.roster.ids if a is not None)
        if self.state is None:
            raise ValueError("the model has not seen a context yet, so it has learned nothing")
        A, b = self.own_start()
        tally = np.zeros(0) if self.factored else self.state.tally
        counted = tally[[TRIALS, PAYOFF, SQUARES]].tolist() if len(tally) else ()
        return ArticleSums(
            *(ids, self._matrices()[slots] - A, self.state.b[slots] - b, np.ones((len(ids), 1))),
            *counted,
        )

    def sums_of(self, log: EventLog, weights: Floats | None = None) -> ArticleSums:
        """What a log teaches: matrix products instead of an update for each event."""
        found = sum_articles(log, weights)
        return replace(found, features=np.ones((len(found.ids), 1)))  # which it does not use

    def _matrices(self) -> Floats:
        """(slots, d, d) each article's A."""
        if self.factored:
            return np.asarray(self.state.L @ np.swapaxes(self.state.L, 1, 2))
        A: Floats = self.state.A
        return A

    def take(self, sums: ArticleSums) -> None:
        """Know this instead of what was learned before; the articles in it must be known."""
        assert self.dimension is not None
        was_factored = self.factored
        if was_factored:
            self._use_inverses()
        self._begin(self.dimension)
        for slot, article in enumerate(self.roster.ids):
            if article is not None:
                self._place(slot, article)
        slots = np.array([self.roster.slot(article) for article in sums.ids], np.int32)
        self._fill(slots, sums)
        if self.adapts:
            self.state.tally[:] = tally_of(sums, self.weight)
        if was_factored or not self._exact():
            self.factorise()
        else:
            self._invert(slots)

    @abstractmethod
    def _exact(self) -> bool:
        """Whether inverses are exact enough for what was learned."""

    def fade(self, factor: float) -> None:
        """As in every model; the prior is weighed anew no later than it would have been."""
        if self.state is not None and self.factored:
            self._fade_factors(factor)
            return
        adapts = self.state is not None and self.adapts
        due = self.state.tally[UNTIL_CHECK] if adapts else 0.0
        super().fade(factor)
        if adapts and not self.factored:
            self.state.tally[UNTIL_CHECK] = due

    def _fade_factors(self, factor: float) -> None:
        """The same by rotations, which lose no digits; sums would."""
        state, slots, (A, b) = self.state, len(self.roster.ids), self.own_start()
        start: Floats = np.asarray(np.linalg.cholesky(A), np.float64)
        fade(state.L[:slots], state.b[:slots], state.z[:slots], start, b, factor, state.room)

    # -- adapting --

    def weigh(self) -> None:
        """Choose by all that was learned how much of the prior to use, or find the ridge."""
        if self.adapts and not self.factored:
            self._reweigh(self.sums())

    def renew(self) -> bool:
        """Weigh the prior anew if that is due; else change to the factored form."""
        if not self.factored and self.adapts and self.state.tally[UNTIL_CHECK] <= 0:
            self._reweigh(self.sums())
            return True
        if not self.factorise():
            raise ScaleError(self.name, "the next trial")
        return True

    def ready_to_search(self, sums: ArticleSums) -> bool:
        """Whether `auto` has seen enough articles to find a ridge."""
        return int((np.einsum("aii->a", sums.S) >= MIN_TRIALS).sum()) >= MIN_ARTICLES

    # -- forms --

    def _use_factors(self) -> None:
        self.factored, self.inverses = True, ()
        self._name_factors()

    def _use_inverses(self) -> None:
        self.factored = False
        for name in ("per_article", "listed", "shared", "scored", "inverses"):
            vars(self).pop(name, None)
        if self.adapts:
            self.shared = (*self.shared, "tally")

    def _new_tally(self) -> Floats:
        return new_tally(self.weight) if self.adapts else np.zeros(0)

    def _convert(self, old: Any) -> None:
        """Fill the factored state from the ordinary one."""
        slots = len(self.roster.ids)
        self.state.b[:slots] = old.b[:slots]
        convert(old.A[:slots], old.b[:slots], old.ridge, self.state.L, self.state.z)

    def factorise(self) -> bool:
        """Change to the factored form; False if it is used already. It keeps its prior."""
        if self.factored:
            return False
        old, kept = self.state, self.arrays()
        for field, array in kept.items():
            if not np.isfinite(array).all():
                row = int(np.argwhere(~np.isfinite(array))[0, 0])
                article = self.roster.ids[row] if field in self.per_article else None
                raise NotFiniteError(f"the {self.name} model ({field})", article)
        assert self.dimension is not None
        self._use_factors()
        self._begin(self.dimension)
        for slot, article in enumerate(self.roster.ids):
            if article is not None:
                self._place(slot, article)
        self._convert(old)
        return True

    def room(self, dimension: int) -> Context:
        """Not unrolled in the factored form: one compilation then serves every d."""
        if self.factored:
            return Dense(np.zeros(dimension), (), np.zeros(dimension))
        return super().room(dimension)

    # -- storing --

    @classmethod
    def from_stored(cls, parameters: Mapping[str, Any], callables: Mapping[str, Any]) -> Self:
        """With the prior that it was given, or that `auto` had found."""
        given = dict(callables)
        found = given.pop("prior", None) if parameters.get("ridge") == AUTO else None
        model = super().from_stored(parameters, given)
        model.prior = model.prior if found is None else found
        return model

    def _check(self, dimension: int) -> None:
        if self.prior is not None:
            self.prior.check_dimension(dimension)

    def restore(
        self, ids: list[str | None], dimension: int | None, arrays: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        """Restore a stored state, in the form that it was stored in."""
        if "weight" in arrays:
            self.weight = float(arrays["weight"][0])
        if "L" in arrays:
            self._use_factors()
        super().restore(ids, dimension, arrays)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The state, and how much of the prior is used."""
        kept = super().arrays()
        return kept | {"weight": np.array([self.weight])} if self.adapts and kept else kept

    def score_from(self, dimension: int, arrays: Mapping[str, Floats]) -> None:
        """Score from arrays of either form."""
        if "L" in arrays:
            self._use_factors()
        super().score_from(dimension, arrays)


def prior_weight(name: str, value: Any) -> float:
    """The weight of a prior, in trials: above 0, and not so near that no inverse is found."""
    if not MIN_RIDGE <= value <= MAX_RIDGE:
        raise ValueError(
            f"{name} must be from {MIN_RIDGE:g} to {MAX_RIDGE:g} (the paper's is 1), got {value!r}"
        )
    return float(value)


def scaled_identities(count: int, size: int, scale: float) -> Floats:
    """(count, size, size) copies of scale·I."""
    return np.tile(np.eye(size) * scale, (count, 1, 1))
