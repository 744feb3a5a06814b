"""The whole feature construction: raw profiles of users and articles to a few numbers each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from topstory.engines import Engine, engine
from topstory.events import EventLog
from topstory.features.clustering.fit import EncodedProfiles, cluster
from topstory.features.clustering.fitted_side import FittedSide
from topstory.features.clustering.projection import PLAIN, WEIGHTED
from topstory.features.clustering.soft_clusters import SoftClusters
from topstory.features.encoding.encoder import Encoder, Threshold
from topstory.features.raw_logs import (
    check_articles,
    events_of,
    raw_folder,
    raw_visitors,
    visits_of,
    with_features,
)
from topstory.features.regression.bilinear import BilinearLogistic
from topstory.features.regression.early_stopping import Step
from topstory.kernels.compilation import Floats

MAX_EVENTS_IN_MEMORY = 200_000_000  # events, of 8 bytes each


# Ignored: scikit-learn is not typed.
class FeatureBuilder(BaseEstimator):  # type: ignore[misc]
    """Features as the paper constructs them (§5.2.2): by default six numbers for each.

    Raw profiles are encoded; a bilinear logistic regression learns from random exploration who
    clicks on what; users and articles are projected by it and clustered; what comes out are
    memberships in the clusters, principal components if asked for, and the constant 1, last.

    Args:
        clusters: of users.
        article_clusters: of articles; None: as many as of users.
        support: the least share of users that must have a category for it to be used: a number,
            or field -> number (0.1 where a field is not named, 0 keeps all).
        article_support: the same, of articles.
        distances: "weighted" (by what articles differ in) or "plain" (the paper's).
        components: principal components beside the memberships, as the paper's §5.5 suggests.
        ridge, held_out, patience, max_iter, tol: of the regression (`BilinearLogistic`).
        above, share: the kernel's width makes this share of largest memberships lie above this.
        engine: "serial", "local" (all cores), "ray", or an `Engine`; it changes no number.
        seed: decides which events are held out, and where k-means starts.

    >>> import topstory as ts
    >>> random = np.random.default_rng(0)
    >>> opera, tag = random.integers(2, size=500), np.array(["sport", "stage"] * 10)
    >>> visitor, shown = random.integers(500, size=20_000), random.integers(20, size=20_000)
    >>> clicks = random.random(20_000) < np.where(opera[visitor] == shown % 2, 0.4, 0.1)
    >>> log = ts.EventLog.from_arrays(
    ...     None, [[str(a) for a in range(20)]], np.zeros(20_000, int), shown.astype(str), clicks,
    ...     visitor=visitor, profiles={"likes": [["opera"] if o else ["golf"] for o in opera]},
    ...     article_profiles={"tags": [[t] for t in tag]},
    ... )
    >>> builder = FeatureBuilder(clusters=2).fit(log)
    >>> builder.user({"likes": ["opera"]}).round(2), builder.article({"tags": ["sport"]}).round(2)
    (array([0.98, 0.02, 1.  ]), array([0.98, 0.02, 1.  ]))
    >>> builder.apply(log).users.shape
    (20000, 3)
    """

    def __init__(
        self,
        clusters: int = 5,
        article_clusters: int | None = None,
        support: Threshold = 0.1,
        article_support: Threshold = 0.0,
        distances: str = WEIGHTED,
        components: int = 0,
        ridge: float = 15.0,
        held_out: float = 0.1,
        patience: int = 10,
        max_iter: int = 200,
        tol: float = 1e-7,
        above: float = 0.5,
        share: float = 0.85,
        engine: str | Engine = "local",
        seed: int = 0,
    ) -> None:
        self.clusters = clusters
        self.article_clusters = article_clusters
        self.support = support
        self.article_support = article_support
        self.distances = distances
        self.components = components
        self.ridge = ridge
        self.held_out = held_out
        self.patience = patience
        self.max_iter = max_iter
        self.tol = tol
        self.above = above
        self.share = share
        self.engine = engine
        self.seed = seed

    def fit(self, log: EventLog, progress: Callable[[Step], None] | None = None) -> FeatureBuilder:
        """Learn from a raw log of random exploration.

        Args:
            log: identifies its visitors, and has raw profiles of users and articles.
            progress: called after each iteration of the regression.
        """
        self._check()
        visitors = raw_visitors(log)
        raw = self._encode(visitors.profiles, log.article_profiles)
        shown = log.shown_index
        check_articles(raw.articles[np.unique(shown)])
        model = self.regression().fit_events(
            raw.users, raw.articles, visitors.number, shown, log.payoff, progress
        )
        return self._fit_clusters(model, raw)

    def fit_folder(
        self,
        folder: str | PathLike[str],
        passes: int | None = None,
        in_memory: int = MAX_EVENTS_IN_MEMORY,
        progress: Callable[[Step], None] | None = None,
    ) -> FeatureBuilder:
        """Learn from the folder of a raw log of any size; the result is that of `fit` on the log.

        The engine's workers read the events; on a cluster, every machine must see the folder. Only
        the encoded users and articles are in this process.

        Args:
            folder: of a log that identifies its visitors, with raw profiles of users and articles.
            passes: learn by mini-batches, as `fit_parts` does, so many times through the log.
            in_memory: a log of more events is not kept in memory: each iteration reads it again.
                An event in memory takes 8 bytes.
            progress: called after each iteration, or batch.
        """
        self._check(passes)
        source, profiles, article_profiles = raw_folder(folder)
        raw = self._encode(profiles, article_profiles)
        model = self.regression()
        if passes is None:
            model.fit_folder(raw.users, raw.articles, source, in_memory, progress)
        else:
            events = partial(visits_of, source)
            model.fit_stream(raw.users, raw.articles, events, passes, progress)
        return self._fit_clusters(model, raw)

    def fit_parts(
        self,
        parts: Callable[[], Iterable[EventLog]],
        passes: int = 3,
        progress: Callable[[Step], None] | None = None,
    ) -> FeatureBuilder:
        """Learn from a raw log that does not fit in memory, by mini-batches.

        The parts share their users and articles, as those of one log do. Of the regression's
        parameters only `ridge` counts here: `passes` takes the place of early stopping, and each
        batch is scored before it is learned from.

        Args:
            parts: returns the log's parts, from the first, each time it is called.
            passes: how many times to go through the log.
            progress: called after each batch.
        """
        self._check(passes)
        first = next(iter(parts()), None)
        if first is None:
            raise ValueError("there are no parts, so there is nothing to fit")
        raw = self._encode(raw_visitors(first).profiles, first.article_profiles)
        events = partial(events_of, parts)
        model = self.regression().fit_stream(raw.users, raw.articles, events, passes, progress)
        return self._fit_clusters(model, raw)

    def apply(self, log: EventLog, keep_profiles: bool = False) -> EventLog:
        """The same events with these features in place of the log's contexts and features.

        Args:
            log: identifies its visitors, and has raw profiles of users and articles.
            keep_profiles: whether the new log has them too.
        """
        check_is_fitted(self)
        contexts = self.users(raw_visitors(log).profiles)
        features = self.articles(log.article_profiles)
        return with_features(log, contexts, features, keep_profiles, self.identity)

    def users(self, profiles: Any) -> npt.NDArray[np.float32]:
        """(V, d) the contexts of users, from a table of raw profiles."""
        check_is_fitted(self)
        found = self.user_side_.many(engine(self.engine), profiles, self.unknown)
        return found.astype(np.float32)

    def articles(self, profiles: Any) -> Floats:
        """(A, m) the features of articles, from a table of raw profiles."""
        check_is_fitted(self)
        return self.article_side_.many(engine(self.engine), profiles, self.unknown)

    def user(self, profile: Mapping[str, Any]) -> Floats:
        """(d,) the context of one user, from a dict: field -> category, or list of categories.

        A field may be left out, or None: unknown. Categories that were not there when the builder
        was fitted are ignored, and counted in `unknown`.
        """
        found = self._side("user_side_").one(profile, self.unknown)
        return found.astype(np.float32).astype(np.float64)  # as a log keeps contexts

    def article(self, profile: Mapping[str, Any]) -> Floats:
        """(m,) the features of one article, likewise."""
        return self._side("article_side_").one(profile, self.unknown)

    def segments(self, profiles: Any) -> npt.NDArray[np.intp]:
        """(V,) the closest cluster of each user: the segments of the `seg` policies (§5.3 III)."""
        closest: npt.NDArray[np.intp] = self._memberships(profiles).argmax(axis=1)
        return closest

    def largest_memberships(self, profiles: Any) -> npt.NDArray[np.float32]:
        """(V,) how much each user belongs to the closest cluster: what Figure 5 counts."""
        largest: npt.NDArray[np.float32] = self._memberships(profiles).max(axis=1)
        return largest

    def save(self, path: str | PathLike[str]) -> None:
        """Write one file, versioned and without pickle; an existing file is replaced."""
        from topstory.features.storage import save

        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> FeatureBuilder:
        """Read what `save` wrote; the features are the same to the bit."""
        from topstory.features.storage import load

        return load(path)

    @property
    def identity(self) -> str:
        """The name of what it learned: builders that make the same features have the same one.

        A hash of everything that a feature depends on. It is the same after `save` and `load`,
        and is kept with logs, policies and services, so that no policy is given another's features.
        """
        from topstory.features.identity import identity_of

        return identity_of(self._side("user_side_"), self._side("article_side_"))

    def _side(self, name: str) -> FittedSide:
        # Not check_is_fitted first: it would take most of the time of one profile.
        found: FittedSide | None = getattr(self, name, None)
        if found is None:
            check_is_fitted(self)
            raise AttributeError(name)
        return found

    def _encode(self, profiles: Any, article_profiles: Any) -> EncodedProfiles:
        users = Encoder(self.support).fit(profiles)
        articles = Encoder(self.article_support, apart=False).fit(article_profiles)
        users.check_kept("users")
        articles.check_kept("articles")
        features = articles.transform(article_profiles).toarray()  # (A, M)
        return EncodedProfiles(
            users, articles, users.transform(profiles), features.astype(np.float64)
        )

    def regression(self) -> BilinearLogistic:
        """The regression, not fitted, with these parameters."""
        return BilinearLogistic(
            ridge=self.ridge,
            held_out=self.held_out,
            patience=self.patience,
            max_iter=self.max_iter,
            tol=self.tol,
            engine=self.engine,
            seed=self.seed,
        )

    def _fit_clusters(self, model: BilinearLogistic, raw: EncodedProfiles) -> FeatureBuilder:
        check_articles(raw.articles[model.shown_ > 0])
        found = cluster(
            engine(self.engine),
            model,
            raw,
            self._soft(self.clusters),
            self._soft(self.article_clusters or self.clusters),
            self.distances,
            self.components,
        )
        self.user_side_, self.article_side_ = found.users, found.articles
        self.means_, self.sizes_, self.histogram_ = found.means, found.sizes, found.histogram
        self.model_ = model
        self.unknown: Counter[str] = Counter()
        return self

    def _soft(self, clusters: int) -> SoftClusters:
        return SoftClusters(clusters, above=self.above, share=self.share, seed=self.seed)

    def _memberships(self, profiles: Any) -> npt.NDArray[np.float32]:
        return self.users(profiles)[:, : self.clusters]

    def _check(self, passes: int | None = None) -> None:
        if passes is not None and passes < 1:
            raise ValueError(f"passes must be at least 1, got {passes!r}")
        if self.distances not in (WEIGHTED, PLAIN):
            raise ValueError(f"distances must be {WEIGHTED} or {PLAIN}, got {self.distances!r}")
        for name in ("clusters", "article_clusters"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}")
        if self.components < 0:
            raise ValueError(f"components must be >= 0, got {self.components!r}")
