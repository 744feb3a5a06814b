"""LinUCB's hybrid model (Li et al. 2010, Algorithm 2)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog
from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.models.factored import (
    FactoredHybrid,
    add_own,
    convert,
    solve_coefficients,
)
from topstory.kernels.models.general_hybrid import GeneralHybrid
from topstory.kernels.models.hybrid import IN_POOL, Hybrid
from topstory.kernels.models.hybrid_forms import ACTIVE, CURRENT, UPDATES
from topstory.kernels.models.model import refresh
from topstory.models.hybrid.changing_z import ChangingZ
from topstory.models.hybrid.crossings import (
    add_parts,
    crossed,
    fields_of,
    new_fields,
    release,
    rows_for,
    with_event,
)
from topstory.models.linear import AUTO, PAPER_RIDGE, prior_weight, scaled_identities
from topstory.models.priors.evidence import collapse, inverted
from topstory.models.priors.fit import likeliest_ridges
from topstory.models.priors.hybrid_state import (
    fade_shared,
    fill_hybrid,
    hybrid_is_exact,
    invert_hybrid,
)
from topstory.models.priors.prior import Prior
from topstory.models.priors.sums import ArticleSums, sum_articles
from topstory.models.priors.weighing import noise, shared_weight

SEARCH_TOLERANCE = 0.2  # of the ridge's logarithm
FORMS = ("S", "v", "active", "current", "left_at")  # cached for scoring


class HybridLinear(ChangingZ):
    """E[r] = zᵀβ + xᵀθ_a, Eq. (6): shared coefficients β over z = x ⊗ f, and a private θ_a.

    What one article learns about its features f carries over to the others. Articles that come
    without features have the constant alone, f = (1): then β is a mean that all θ_a share.

    Args:
        ridge: the weight of the prior θ_a = 0, in trials; 1 in the paper. `"auto"`: the likeliest
            one, given the trials so far, once there are 20 articles with some.
        shared_ridge: the same for β = 0; also 1.
        prior: where β starts instead, and the ridge, learned from an earlier log
            (`ts.fit_prior`). How much of it is used follows from the trials.
        event_features: how many numbers of a context, the last before the constant, are none of x
            but of f: features of the article that change with the event, such as its age. A log
            or a feature model that has some says so by itself.

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
        event_features: int = 0,
    ) -> None:
        super().__init__(ridge, prior)
        self._begin_with(event_features)
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

    def parameters(self) -> dict[str, Any]:
        """Both ridges, unless a prior takes their place."""
        own = AUTO if self.finds_ridge else self.given_ridge
        chosen = {"ridge": own, "shared_ridge": self.given_shared}
        event = {"event_features": self.event_features} if self.event_features else {}
        if self.prior is not None and not self.finds_ridge:
            return {name: value for name, value in chosen.items() if value is not None} | event
        return {name: value or PAPER_RIDGE for name, value in chosen.items()} | event

    def own_start(self) -> tuple[Floats, Floats]:
        """A and b of an article without trials."""
        return self.ridge * np.eye(self.own_dimension), np.zeros(self.own_dimension)

    def shared_start(self) -> tuple[Floats, Floats]:
        """A0 and b0 before any trial."""
        size = self.own_dimension * self.feature_count
        if self.prior is None:
            return self.shared_ridge * np.eye(size), np.zeros(size)
        return self.prior.shared(self.weight)

    def _fits(self, article: str, features: Floats | None) -> None:
        if features is None and article in self._features:
            return
        count = 1 if features is None else len(features)
        if self.prior is not None and count != self.prior.features - self.event_features:
            raise ValueError(
                f"article {article!r} comes with {'no' if features is None else count} features, "
                "but those that the prior was learned from had "
                f"{self.prior.features - self.event_features}"
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
        state, slots = self.state, np.array([slot], np.int32)
        if self.factored:
            theta = state.theta[slots].copy()
            state.theta[slot] = 0.0
        else:
            theta = (state.A_inverse[slot] @ state.b[slot])[np.newaxis]
            self._drop_form(slot)
        if self.general:
            add_parts(state.departed, state, slots, theta, 1.0)
            release(state, slot)
        else:
            add_own(state.departed, theta, state.features[slots], self.ridge)

    def _place(self, slot: int, article: str) -> None:
        self.state.features[slot] = self._features[article]

    def _name_factors(self) -> None:
        self.per_article, self.listed = ("L", "b", "z", "theta", "features"), ()
        self.shared = ("departed", "L0", "z0")
        self.scored = ("L", "z", "features", "L0", "z0")
        if self.general:
            self.per_article += self._crossed
            self.shared = ("K", *self.shared)
            z = tuple(field for field in self._crossed if field != "reach")
            self.scored = ("L", "z", "features", *z, "K", "L0", "z0")

    def _convert(self, old: Hybrid | GeneralHybrid) -> None:
        super()._convert(old)
        if isinstance(old, GeneralHybrid):
            self.state = self.state._replace(**fields_of(old))
        state = self.state
        self._solve_own()
        state.departed[:] = old.departed
        b0 = old.departed.copy()
        if self.general:
            add_parts(b0, state, np.arange(len(state.theta), dtype=np.int32), state.theta, 1.0)
        else:
            add_own(b0, state.theta, state.features, self.ridge)
        convert(old.A0, b0[np.newaxis], old.shared_ridge, state.L0, state.z0[np.newaxis])

    def _solve_own(self) -> None:
        """Fill in the factored form's θ: 0 in slots whose article was removed."""
        solve_coefficients(self.state.L, self.state.z, self.state.theta)
        self.state.theta[[slot for slot, a in enumerate(self.roster.ids) if not a]] = 0.0

    def _fresh(self, capacity: int, dimension: int) -> Hybrid | GeneralHybrid | FactoredHybrid:
        count, d = self._count or 1, dimension - self.event_features
        shared = d * self.feature_count
        A0, b0 = self.shared_start()
        plain = self.prior is None  # then the bits are those of a multiple of I
        least = self.shared_ridge if plain else float(np.linalg.eigvalsh(A0)[0])
        fields = new_fields(capacity, d, count, self.event_features, self._rows)
        if self.factored:
            L0: Floats = np.eye(shared) * np.sqrt(self.shared_ridge)
            if not plain:
                L0 = np.asarray(np.linalg.cholesky(A0), np.float64)
            return FactoredHybrid(
                L=scaled_identities(capacity, d, np.sqrt(self.ridge)),
                b=np.zeros((capacity, d)),
                z=np.zeros((capacity, d)),
                theta=np.zeros((capacity, d)),
                features=np.ones((capacity, count)),
                departed=b0.copy(),
                L0=L0[np.newaxis],
                z0=np.asarray(np.linalg.solve(L0, b0), np.float64),
                ridge=self.ridge,
                shared_ridge=least,
                room=np.zeros((4, d)),
                feature_room=np.zeros(self.feature_count),
                shared_room=np.zeros((4, shared)),
                **fields._asdict(),
            )
        P = np.eye(shared) * (1.0 / self.shared_ridge) if plain else inverted(A0)
        wide = d * (1 + self.event_features)
        kept: dict[str, Any] = {
            "A": scaled_identities(capacity, d, self.ridge),
            "b": np.zeros((capacity, d)),
            "A_inverse": scaled_identities(capacity, d, 1.0 / self.ridge),
            "features": np.ones((capacity, count)),
            "updates": np.zeros(capacity, np.int64),
            "A0": A0[np.newaxis],
            "b0": b0,
            "departed": b0.copy(),
            "P": P[np.newaxis],
            "beta": P @ b0,
            "S": np.zeros((capacity, wide, wide)),
            "v": np.zeros((capacity, wide)),
            "active": np.zeros(capacity, np.int32),
            "current": np.zeros(capacity, np.int32),
            "left_at": np.full(capacity, -1, np.int64),
            "clock": np.zeros(4, np.int64),
            "ridge": self.ridge,
            "shared_ridge": least,
            "tally": self._new_tally(),
            "room": np.zeros((4, d)),
            "shared_room": np.zeros((2, shared)),
            "square_room": np.zeros((1 if self.general else 2, d, d)),
            "cholesky_room": np.zeros((shared, shared)),
        }
        if not self.general:
            return Hybrid(**kept)
        return GeneralHybrid(
            **kept,
            **fields._asdict(),
            event=np.zeros((capacity, d, d * self.event_features)),
            G=np.zeros((self._rows, d, d * count)),
            feature_room=np.zeros(self.feature_count),
            wide_room=np.zeros(wide),
            cross_room=np.zeros((d, shared)),
        )

    # -- what was learned, without the prior --

    def sums(self) -> ArticleSums:
        """What was learned of the articles, and what else it left in the shared part."""
        own, state = super().sums(), self.state
        slots = np.array([self.roster.slot(article) for article in own.ids], np.int32)
        features = with_event(state.features[slots], self.event_features)
        A, b = self.shared_start()
        beyond = crossed(state, slots, self.event_features) if self.general else None
        here = collapse(own.S, own.b, features, self.ridge, beyond)
        A0 = state.L0[0] @ state.L0[0].T if self.factored else state.A0[0]
        return replace(
            own,
            features=features,
            A0=A0 - A - here.A,
            b0=state.departed - b,
            crossed=beyond,
            reach=state.reach[slots] if self.general else None,
        )

    def sums_of(self, log: EventLog, weights: Floats | None = None) -> ArticleSums:
        """What a log teaches, with the features of its articles."""
        return sum_articles(log, weights, self.event_features)

    def take(self, sums: ArticleSums) -> None:
        """Know this instead of what was learned before; the articles in it must be known."""
        now = with_event(
            np.array([self._features[a] for a in sums.ids]).reshape(-1, self._count or 1),
            self.event_features,
        )
        sums = sums.as_of(now)
        self.general = self.event_features > 0 or sums.crossed is not None
        self._rows = rows_for(sums, self.event_features)
        if not self.factored:  # else they are named anew in any case
            self._use_inverses()
        super().take(sums)

    def _fill(self, slots: Slots, sums: ArticleSums) -> None:
        fill_hybrid(self.state, slots, sums, self.shared_start(), self.event_features)

    def _invert(self, slots: Slots) -> None:
        invert_hybrid(self.state, slots)

    def _exact(self) -> bool:
        return hybrid_is_exact(self.state)

    def _fade_factors(self, factor: float) -> None:
        if self.general:  # which holds no scales at which sums would lose digits
            self.take(self.sums().times(factor))
            return
        slots = np.array([s for s, a in enumerate(self.roster.ids) if a is not None], np.int32)
        before = self.state.L.copy()
        super()._fade_factors(factor)
        self._solve_own()
        fade_shared(self.state, before, slots, self.shared_start(), factor)

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
        return {name: kept[name] for name in kept if name not in (*FORMS, "departed")}

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
        self._find_form(arrays)
        self._check_places(arrays, len(ids))
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

    def scored_rows(self, slots: Slots) -> dict[str, Floats]:
        """The forms S and v computed anew; trial by trial, their last bits would depend on when.

        None is kept up to date from here on, until somebody scores again.
        """
        self._drop_forms()
        self.ready(slots)
        rows = super().scored_rows(slots)
        self._drop_forms()
        return rows

    def _drop_forms(self) -> None:
        if not self.factored:
            self.state.left_at[:] = -1
            self.state.clock[[ACTIVE, CURRENT]] = 0

    def score_from(self, dimension: int, arrays: Mapping[str, Floats]) -> None:
        """Score from forms S and v of a model in another process, or from its factors."""
        self._find_form(arrays)
        super().score_from(dimension, arrays)
        if not self.factored:
            self.state.left_at[:] = IN_POOL  # so that none of them is computed here
