"""LinUCB's hybrid model (Li et al. 2010, Algorithm 2)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from topstory.events import EventLog
from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.models.factored import (
    FactoredHybrid,
    add_own,
    convert,
    solve_coefficients,
)
from topstory.kernels.models.hybrid import IN_POOL, Hybrid
from topstory.kernels.models.hybrid_forms import ACTIVE, CURRENT, UPDATES
from topstory.kernels.models.model import refresh
from topstory.models.linear import (
    AUTO,
    PAPER_RIDGE,
    LinearModel,
    prior_weight,
    scaled_identities,
)
from topstory.models.priors.evidence import collapse, inverted
from topstory.models.priors.fit import likeliest_ridges
from topstory.models.priors.hybrid_state import fill_hybrid, hybrid_is_exact
from topstory.models.priors.prior import Prior
from topstory.models.priors.sums import ArticleSums, sum_articles
from topstory.models.priors.weighing import noise, shared_weight

SEARCH_TOLERANCE = 0.2  # of the ridge's logarithm


class HybridLinear(LinearModel):
    """E[r] = zᵀβ + xᵀθ_a, Eq. (6): shared coefficients β over z = x ⊗ f, and a private θ_a.

    What one article learns about its features f carries over to the others. Articles that come
    without features have the constant alone, f = (1): then β is a mean that all θ_a share.

    Args:
        ridge: the weight of the prior θ_a = 0, in trials; 1 in the paper. `"auto"`: the likeliest
            one, given the trials so far, once there are 20 articles with some.
        shared_ridge: the same for β = 0; also 1.
        prior: where β starts instead, and the ridge, learned from an earlier log
            (`ts.fit_prior`). How much of it is used follows from the trials.

    >>> HybridLinear(shared_ridge=10).parameters()
    {'ridge': 1.0, 'shared_ridge': 10.0}
    """

    name: ClassVar[str] = "hybrid"
    per_article: tuple[str, ...] = (
        "A",
        "b",
        "A_inverse",
        "features",
        "updates",
        "S",
        "v",
        "left_at",
    )
    listed: tuple[str, ...] = ("active", "current")
    shared: tuple[str, ...] = ("A0", "b0", "departed", "P", "beta", "clock")
    scored: tuple[str, ...] = ("S", "v")
    inverses: tuple[tuple[str, str], ...] = (("A", "A_inverse"), ("A0", "P"))

    def __init__(
        self,
        ridge: float | str | None = None,
        shared_ridge: float | None = None,
        prior: Prior | None = None,
    ) -> None:
        super().__init__(ridge, prior)
        self.given_shared = (
            None if shared_ridge is None else prior_weight("shared_ridge", shared_ridge)
        )
        self.ridge = self.given_ridge or PAPER_RIDGE
        self.shared_ridge = self.given_shared or PAPER_RIDGE
        if prior is not None:
            if not prior.features:
                raise ValueError(
                    "the prior has nothing for hybrid: its log has too many features; fit it on "
                    "a log with fewer, or take another model"
                )
            self.weight = prior.weight
            self.ridge = self.given_ridge or prior.ridge
            self.shared_ridge = self.given_shared or prior.shared_ridge
            self.prior = replace(prior, ridge=self.ridge, shared_ridge=self.shared_ridge)
        self._features: dict[str, Floats] = {}
        self._count = 0  # of features; 0 until the first article is known

    def parameters(self) -> dict[str, Any]:
        """Both ridges, unless a prior takes their place."""
        own = AUTO if self.finds_ridge else self.given_ridge
        chosen = {"ridge": own, "shared_ridge": self.given_shared}
        if self.prior is not None and not self.finds_ridge:
            return {name: value for name, value in chosen.items() if value is not None}
        return {name: value or PAPER_RIDGE for name, value in chosen.items()}

    def own_start(self) -> tuple[Floats, Floats]:
        """A and b of an article without trials."""
        assert self.dimension is not None
        return self.ridge * np.eye(self.dimension), np.zeros(self.dimension)

    def shared_start(self) -> tuple[Floats, Floats]:
        """A0 and b0 before any trial."""
        assert self.dimension is not None
        size = self.dimension * (self._count or 1)
        if self.prior is None:
            return self.shared_ridge * np.eye(size), np.zeros(size)
        return self.prior.shared(self.weight)

    def _fits(self, article: str, features: Floats | None) -> None:
        if features is None and article in self._features:
            return
        count = 1 if features is None else len(features)
        if self.prior is not None and count != self.prior.features:
            raise ValueError(
                f"article {article!r} comes with {'no' if features is None else count} features, "
                f"but those that the prior was learned from had {self.prior.features}"
            )
        if self._count not in (0, count):
            raise ValueError(
                f"article {article!r} comes with {'no' if features is None else count} "
                f"features, but others here have {self._count}: "
                "add_article(id, features) takes the same number for each"
            )

    def _admit(self, article: str, features: Floats | None) -> None:
        known = self._features.get(article)
        if known is None:
            given = np.ones(1) if features is None else features
            self._count = len(given)
            self._features[article] = given
        elif features is not None and not np.array_equal(known, features):
            raise ValueError(
                f"article {article!r} is known with other features; edit_article(id, features) "
                "changes them"
            )

    def _change(self, article: str, features: Floats) -> None:
        """From now on its z is x ⊗ these; β and its own θ_a = A⁻¹(b − Bβ) stay as they are.

        So its estimate changes by xᵀβ(f' − f). B is not kept but follows from f: it becomes that
        of the new features, and b follows it. b0 stays, as it does when an article is removed.
        The width is that of an article which had these features all along.
        """
        known = self._features[article]
        if np.array_equal(known, features):
            return
        self._features[article] = features
        if self.state is None:
            return
        slot, state = self.roster.slot(article), self.state
        d = len(state.b[slot])
        if self.factored:
            beta = solve_triangular(state.L0[0], state.z0, lower=True, trans="T")
            A, theta = state.L[slot] @ state.L[slot].T, state.theta[slot].copy()
        else:
            beta, A, theta = state.beta, state.A[slot], state.A_inverse[slot] @ state.b[slot]
        moved = beta.reshape(d, -1) @ (features - known)  # (d,) what xᵀβf changes by, of x
        state.b[slot] += A @ moved - self.ridge * moved
        add_own(state.departed, theta[np.newaxis], known[np.newaxis], self.ridge)
        if self.factored:
            state.z[slot] = solve_triangular(state.L[slot], state.b[slot], lower=True)
            theta = solve_triangular(state.L[slot], state.z[slot], lower=True, trans="T")
            state.theta[slot] = theta
        else:
            theta = state.A_inverse[slot] @ state.b[slot]
            self._drop_form(slot)
            state.left_at[slot] = -1
        add_own(state.departed, theta[np.newaxis], features[np.newaxis], -self.ridge)
        state.features[slot] = features

    def features_of(self, article: str) -> Floats | None:
        """The article's features."""
        return self._features[article]

    def remove(self, article: str) -> None:
        """Forget the article's own part. What the shared part learned from it stays."""
        slot = self.roster.slot(article) if article in self.roster else -1
        super().remove(article)
        self._features.pop(article, None)
        if self.state is None:
            return
        own, state = slice(slot, slot + 1), self.state
        if self.factored:
            add_own(state.departed, state.theta[own], state.features[own], self.ridge)
            state.theta[slot] = 0.0
            return
        theta = state.A_inverse[slot] @ state.b[slot]
        add_own(state.departed, theta[np.newaxis], state.features[own], self.ridge)
        self._drop_form(slot)

    def _drop_form(self, slot: int) -> None:
        """Keep an article's S and v up to date no longer."""
        state = self.state
        for field, place in (("active", ACTIVE), ("current", CURRENT)):
            listed = getattr(state, field)
            count = int(state.clock[place])
            kept = listed[:count][listed[:count] != slot]
            listed[: len(kept)] = kept
            state.clock[place] = len(kept)

    def _place(self, slot: int, article: str) -> None:
        self.state.features[slot] = self._features[article]

    def _name_factors(self) -> None:
        self.per_article, self.listed = ("L", "b", "z", "theta", "features"), ()
        self.shared = ("departed", "L0", "z0")
        self.scored = ("L", "z", "features", "L0", "z0")

    def _convert(self, old: Hybrid) -> None:
        super()._convert(old)
        state = self.state
        self._solve_own()
        state.departed[:] = old.departed
        b0 = old.departed.copy()
        add_own(b0, state.theta, state.features, self.ridge)
        convert(old.A0, b0[np.newaxis], old.shared_ridge, state.L0, state.z0[np.newaxis])

    def _solve_own(self) -> None:
        """Fill in the factored form's θ: 0 in slots whose article was removed."""
        solve_coefficients(self.state.L, self.state.z, self.state.theta)
        self.state.theta[[slot for slot, a in enumerate(self.roster.ids) if not a]] = 0.0

    def _fresh(self, capacity: int, dimension: int) -> Hybrid | FactoredHybrid:
        count = self._count or 1
        shared = dimension * count
        A0, b0 = self.shared_start()
        plain = self.prior is None  # then the bits are those of a multiple of I
        if self.factored:
            L0: Floats = np.eye(shared) * np.sqrt(self.shared_ridge)
            if not plain:
                L0 = np.asarray(np.linalg.cholesky(A0), np.float64)
            return FactoredHybrid(
                L=scaled_identities(capacity, dimension, np.sqrt(self.ridge)),
                b=np.zeros((capacity, dimension)),
                z=np.zeros((capacity, dimension)),
                theta=np.zeros((capacity, dimension)),
                features=np.ones((capacity, count)),
                departed=b0.copy(),
                L0=L0[np.newaxis],
                z0=np.asarray(np.linalg.solve(L0, b0), np.float64),
                ridge=self.ridge,
                room=np.zeros((4, dimension)),
                shared_room=np.zeros((4, shared)),
            )
        P = np.eye(shared) * (1.0 / self.shared_ridge) if plain else inverted(A0)
        return Hybrid(
            A=scaled_identities(capacity, dimension, self.ridge),
            b=np.zeros((capacity, dimension)),
            A_inverse=scaled_identities(capacity, dimension, 1.0 / self.ridge),
            features=np.ones((capacity, count)),
            updates=np.zeros(capacity, np.int64),
            A0=A0[np.newaxis],
            b0=b0,
            departed=b0.copy(),
            P=P[np.newaxis],
            beta=P @ b0,
            S=np.zeros((capacity, dimension, dimension)),
            v=np.zeros((capacity, dimension)),
            active=np.zeros(capacity, np.int32),
            current=np.zeros(capacity, np.int32),
            left_at=np.full(capacity, -1, np.int64),
            clock=np.zeros(4, np.int64),
            ridge=self.ridge,
            shared_ridge=self.shared_ridge if plain else float(np.linalg.eigvalsh(A0)[0]),
            tally=self._new_tally(),
            room=np.zeros((4, dimension)),
            shared_room=np.zeros((2, shared)),
            square_room=np.zeros((2, dimension, dimension)),
            cholesky_room=np.zeros((shared, shared)),
        )

    # -- what was learned, without the prior --

    def sums(self) -> ArticleSums:
        """What was learned of the articles, and what removed ones left in the shared part."""
        own, state = super().sums(), self.state
        features = state.features[[self.roster.slot(article) for article in own.ids]]
        A, b = self.shared_start()
        here = collapse(own.S, own.b, features, self.ridge)
        A0 = state.L0[0] @ state.L0[0].T if self.factored else state.A0[0]
        return replace(own, features=features, A0=A0 - A - here.A, b0=state.departed - b)

    def sums_of(self, log: EventLog, weights: Floats | None = None) -> ArticleSums:
        """What a log teaches, with the features of its articles."""
        return sum_articles(log, weights)

    def _fill(self, slots: Slots, sums: ArticleSums) -> None:
        fill_hybrid(self.state, slots, sums, self.shared_start())

    def _exact(self) -> bool:
        return hybrid_is_exact(self.state)

    def _reweigh(self, sums: ArticleSums) -> None:
        if self.finds_ridge:
            if self.ready_to_search(sums):
                self.ridge, _ = likeliest_ridges(sums, (self.shared_ridge,), SEARCH_TOLERANCE)
        else:
            assert self.prior is not None
            A, b = self.shared_start()
            variance = noise(self.prior, sums)
            self.weight = shared_weight(
                self.prior, self.state.A0[0] - A, self.state.b0 - b, variance
            )
        self.take(sums)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The state; the features also when there is none yet."""
        blank = np.ones(self._count)
        rows = [self._features.get(article or "", blank) for article in self.roster.ids]
        kept = super().arrays() or ({"features": np.array(rows)} if rows else {})
        return kept | {"found_ridge": np.array([self.ridge])} if self.finds_ridge else kept

    def learned(self) -> dict[str, npt.NDArray[Any]]:
        """Without the forms S and v: their last bits depend on which pools were scored."""
        kept = self.arrays()
        if "clock" in kept:
            kept["clock"] = kept["clock"][UPDATES:]
        forms = ("S", "v", "active", "current", "left_at", "departed")
        return {name: array for name, array in kept.items() if name not in forms}

    def restore(
        self, ids: list[str | None], dimension: int | None, arrays: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        """Restore a stored state, the articles' features first."""
        features = arrays.get("features", np.ones((len(ids), 1)))
        if features.ndim != 2 or len(features) != len(ids):
            raise ValueError(f"features: expected {len(ids)} rows, found {features.shape}")
        self._features = {
            article: row.copy() for article, row in zip(ids, features, strict=True) if article
        }
        self._count = features.shape[1] if len(ids) or dimension else 0
        if "found_ridge" in arrays:
            self.ridge = float(arrays["found_ridge"][0])
        if dimension is None or "departed" in arrays:
            super().restore(ids, dimension, arrays)
        else:
            self._restore_undivided(ids, dimension, arrays)

    def _restore_undivided(
        self, ids: list[str | None], dimension: int, arrays: Mapping[str, npt.NDArray[Any]]
    ) -> None:
        """Restore what version 0.1.0 stored, which did not tell the parts of b0 apart."""
        own, shared = np.zeros((len(ids), dimension)), np.zeros(dimension * self._count)
        super().restore(ids, dimension, {**arrays, "theta": own, "departed": shared})
        state, present = self.state, [slot for slot, article in enumerate(ids) if article]
        if self.factored:
            self._solve_own()
            own, b0 = state.theta[present], state.L0[0] @ state.z0
        else:
            own, b0 = np.einsum("aij,aj->ai", state.A_inverse, state.b)[present], state.b0
        state.departed[:] = b0
        add_own(state.departed, own, state.features[present], -self.ridge)

    def ready(self, slots: Slots) -> None:
        """Compute the forms S and v of articles that do not have them yet."""
        if not self.factored:
            refresh(self.state, slots)

    def score_from(self, dimension: int, arrays: Mapping[str, Floats]) -> None:
        """Score from forms S and v of a model in another process, or from its factors."""
        super().score_from(dimension, arrays)
        if not self.factored:
            self.state.left_at[:] = IN_POOL  # so that none of them is computed here
