"""Bilinear logistic regression: who clicks on what, from raw features of both (paper, §5.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from topstory.engines import Engine, engine
from topstory.events.folder.stream import RawFolder
from topstory.features.regression.early_stopping import LAST_BATCH, EarlyStopping, Step
from topstory.features.regression.event_blocks import FolderBlocks, block_count, cut_events
from topstory.features.regression.labels import (
    check_clicks,
    check_mean,
    held_out_mask,
    share_held_out,
)
from topstory.features.regression.lbfgs import minimise
from topstory.features.regression.mini_batches import MiniBatches
from topstory.features.regression.objective import Objective
from topstory.kernels.compilation import Floats


# Ignored: scikit-learn is not typed.
class BilinearLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Click probability σ(φ_uᵀWφ_a + intercept), fitted by L-BFGS with an L2 penalty on W.

    The D·M products φ_u ⊗ φ_a are never made: with e = σ(s) − click, the gradient is Φ_uᵀ diag(e)
    Φ_a, summed article by article over sparse users. It is a sum over blocks of users, which the
    engine spreads over cores or machines.

    Args:
        ridge: the penalty is ridge/2·‖W‖², as in `LogisticRegression(C=1/ridge)`.
        held_out: share of the events to watch the fit on (at most a million of them); 0: none.
        patience: stop when the held-out loss has not improved for so many iterations; the best
            W is kept.
        max_iter: iterations at most.
        tol: stop when an iteration improves the loss by less than this, relatively.
        user_features: D, for `fit(X, y)` on rows [φ_u, φ_a]; None: half of the columns.
        engine: "serial", "local" (all cores), "ray", or an `Engine`.
        seed: decides which events are held out.

    >>> random = np.random.default_rng(0)
    >>> X = random.integers(2, size=(4000, 4)).astype(float)
    >>> X[:, [1, 3]] = 1.0  # the constants of users and articles
    >>> y = random.random(4000) < np.where(X[:, 0] == X[:, 2], 0.6, 0.2)
    >>> model = BilinearLogistic(ridge=1.0, user_features=2).fit(X, y)
    >>> bool(model.coef_[0, 0] > 1), round(model.auc_, 1)
    (True, 0.7)
    """

    def __init__(
        self,
        ridge: float = 15.0,
        held_out: float = 0.1,
        patience: int = 10,
        max_iter: int = 200,
        tol: float = 1e-7,
        user_features: int | None = None,
        engine: str | Engine = "local",
        seed: int = 0,
    ) -> None:
        self.ridge = ridge
        self.held_out = held_out
        self.patience = patience
        self.max_iter = max_iter
        self.tol = tol
        self.user_features = user_features
        self.engine = engine
        self.seed = seed

    def fit(self, X: Any, y: Any) -> BilinearLogistic:
        """Fit on rows [φ_u, φ_a] and clicks, as scikit-learn has it."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        self.classes_, clicks = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("y has one class; a fit needs events with and without a click")
        users, articles = self._halves(X)
        profiles, shown = np.unique(articles.toarray(), axis=0, return_inverse=True)
        visitor = np.arange(X.shape[0])
        return self.fit_events(users, profiles, visitor, shown.reshape(-1), clicks)

    def fit_events(
        self,
        users: Any,
        articles: npt.ArrayLike,
        visitor: npt.NDArray[Any],
        shown: npt.NDArray[Any],
        clicks: npt.ArrayLike,
        progress: Callable[[Step], None] | None = None,
    ) -> BilinearLogistic:
        """Fit on events that share users and articles.

        Args:
            users: (V, D) φ_u, sparse.
            articles: (A, M) φ_a.
            visitor: (n,) the event's row of `users`.
            shown: (n,) the event's row of `articles`.
            clicks: (n,) between 0 and 1.
            progress: called after each iteration.
        """
        self._check()
        target = np.asarray(clicks, np.float32)
        check_clicks(target)
        aside = held_out_mask(self.seed, share_held_out(self.held_out, len(target)), len(target))
        features = np.ascontiguousarray(articles, np.float64)  # (A, M)
        matrix = sparse.csr_array(users)
        blocks = cut_events(matrix, len(features), visitor, shown, target, aside)
        objective = Objective(engine(self.engine), matrix, features, self.ridge, list(blocks))
        return self._fit(objective, progress)

    def fit_folder(
        self,
        users: Any,
        articles: npt.ArrayLike,
        source: RawFolder,
        in_memory: int,
        progress: Callable[[Step], None] | None = None,
    ) -> BilinearLogistic:
        """Fit on the events of a log's folder, which the engine's workers read.

        Args:
            users: (V, D) φ_u, sparse, in the order of the log's users.
            articles: (A, M) φ_a, in the order of the log's articles.
            source: the folder, which every worker must be able to read.
            in_memory: a log of more events is read again for each sum over it; with fewer, the
                workers keep the events. Either way the numbers are the same.
            progress: called after each iteration.
        """
        self._check()
        total = source.contents.events
        read = FolderBlocks(source, share_held_out(self.held_out, total), self.seed)
        objective = Objective(
            engine(self.engine),
            sparse.csr_array(users),
            np.ascontiguousarray(articles, np.float64),
            self.ridge,
            list(source.parts(total // block_count(total))),
            read,
            keep=total <= in_memory,
        )
        return self._fit(objective, progress)

    def _fit(
        self, objective: Objective, progress: Callable[[Step], None] | None
    ) -> BilinearLogistic:
        check_mean(objective.mean)
        watch = EarlyStopping(objective, self.patience, progress)
        minimise(objective, self.ridge, watch, self.max_iter, self.tol)
        self.shown_ = objective.shown
        self.coef_ = watch.best[:-1].reshape(objective.shape)
        self.intercept_ = float(watch.best[-1])
        self.history_ = tuple(watch.history)
        self.n_iter_ = len(watch.history) - 1
        self.log_loss_, self.auc_ = watch.log_loss, watch.auc
        self.scored_on_ = watch.scored_on
        return self

    def fit_stream(
        self,
        users: Any,
        articles: npt.ArrayLike,
        events: Callable[[], Iterable[tuple[Any, Any, Any]]],
        passes: int,
        progress: Callable[[Step], None] | None = None,
    ) -> BilinearLogistic:
        """Fit by mini-batches, on (visitor, shown, clicks) that `events` returns for each pass."""
        self._check()
        features = np.ascontiguousarray(articles, np.float64)
        counts = np.zeros(len(features), np.int64)
        total = clicked = 0.0
        for _, shown, clicks in events():
            check_clicks(np.asarray(clicks))
            counts += np.bincount(shown, minlength=len(features))
            total, clicked = total + len(clicks), clicked + float(np.sum(clicks, dtype=np.float64))
        check_mean(clicked / max(1.0, total))
        batches = MiniBatches(users, features, int(total) * passes, self.ridge)
        for _ in range(passes):
            for part in events():
                batches.learn(*part, progress)
        self.coef_, self.intercept_ = batches.coef, batches.intercept
        self.history_ = tuple(batches.history)
        self.n_iter_ = len(self.history_)
        last = self.history_[-1]
        self.log_loss_, self.auc_ = last.held_out_loss, last.auc
        self.scored_on_ = LAST_BATCH
        self.shown_ = counts
        return self

    def decision_function(self, X: Any) -> Floats:
        """The scores of rows [φ_u, φ_a]."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        users, articles = self._halves(X)
        found: Floats = (users @ self.coef_ * articles.toarray()).sum(axis=1) + self.intercept_
        return found

    def predict_proba(self, X: Any) -> Floats:
        """(n, 2) chances of no click and of a click."""
        chance = 1.0 / (1.0 + np.exp(-self.decision_function(X)))
        return np.column_stack([1.0 - chance, chance])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likelier class."""
        check_is_fitted(self)
        found: npt.NDArray[Any] = self.classes_[(self.decision_function(X) > 0).astype(int)]
        return found

    def _halves(self, X: Any) -> tuple[Any, Any]:
        width = self.user_features
        if width is None:
            width = (X.shape[1] + 1) // 2
        if not 0 < width <= X.shape[1]:
            raise ValueError(f"user_features must lie in 1..{X.shape[1]}, got {width!r}")
        matrix = sparse.csr_array(X)
        rest = matrix[:, width:]
        if width == X.shape[1]:  # no article features: the constant alone
            rest = sparse.csr_array(np.ones((X.shape[0], 1)))
        return sparse.csr_array(matrix[:, :width]), sparse.csr_array(rest)

    def _check(self) -> None:
        for name in ("ridge", "tol"):
            value = getattr(self, name)
            if not 0 <= value < np.inf:
                raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out must be a share in [0, 1), got {self.held_out!r}")
        for name in ("patience", "max_iter"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # on rows without constants, it has products only
        return tags
