"""The whole feature construction: raw profiles of users and articles to a few numbers each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from topstory.engines import Engine, engine
from topstory.events import EventLog
from topstory.events.columns.profiles import as_profiles
from topstory.features.clustering.fit import Groups
from topstory.features.clustering.fitted_side import FittedSide
from topstory.features.clustering.projection import PLAIN, WEIGHTED
from topstory.features.encoding.categories import Sparse
from topstory.features.encoding.encoder import Threshold
from topstory.features.event.declared import EventFeatures
from topstory.features.event.of_log import (
    check_events,
    published_field,
    with_event_features,
    without_field,
)
from topstory.features.fields.profile_encoder import check_numbers
from topstory.features.fields.text import COMPONENTS
from topstory.features.methods.method import RawProfiles, Regress, Settings
from topstory.features.methods.registry import CLUSTERS, METHODS, NEED_NO_ARTICLES
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
    """Features from raw profiles of any kinds, by default as the paper constructs them (§5.2.2).

    That is, raw profiles are encoded; a bilinear logistic regression learns from random exploration
    who clicks on what; users and articles are projected by it and clustered; what comes out are
    memberships in the clusters, principal components if asked for, and the constant 1, last.

    Args:
        clusters: of users.
        article_clusters: of articles; None: as many as of users.
        support: the least share of users that must have a category for it to be used: a number,
            or field -> number (0 keeps all). Where nothing is said it is 0.1, the paper's; with
            the method direct 0.01.
        article_support: the same, of articles.
        distances: "weighted" (by what articles differ in) or "plain" (the paper's).
        components: principal components beside the memberships, as the paper's §5.5 suggests.
        ridge, held_out, patience, max_iter, tol: of the regression (`BilinearLogistic`).
        above, share: the kernel's width makes this share of largest memberships lie above this.
        engine: "serial", "local" (all cores), "ray", or an `Engine`; it changes no number.
        seed: decides which events are held out, and where k-means starts.
        method: "clusters" as above; "direct": the profile itself, one-hot and scaled; "pca": its
            principal components, ten or as many as `components` says; "bilinear": the regression's
            log-odds of a click on each cluster of articles.
        numbers: how numbers and dates are encoded: "scaled", "bins" or "splines"; None: as suits
            the method.
        text: how many numbers a field of text becomes.
        event: features that change with the event: any of hour_of_day, weekday, position,
            age_hours and seen_before. They come last in a context, before the constant.
        event_in_f: others of these, which enter the article's features f instead: in hybrid models
            z = x ⊗ f depends on them. Other models take them as those of `event`.
        published: the field of articles' profiles that says when one came out, for age_hours;
            None: their only date.
        timezone: whose hours and weekdays count.

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

    user_side_: FittedSide
    article_side_: FittedSide  # if there are profiles of articles
    model_: BilinearLogistic  # if the method learns from clicks
    means_: Floats  # (clusters, D) of φ_u in each cluster, if there are any
    sizes_: Floats  # (clusters,) its users
    histogram_: npt.NDArray[np.int64]  # of users' largest memberships
    event_: EventFeatures  # none, if no features of events were asked for
    unknown: Counter[str]  # by field: how often it held a category that is not known

    def __init__(
        self,
        clusters: int = 5,
        article_clusters: int | None = None,
        support: Threshold | None = None,
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
        method: str = CLUSTERS,
        numbers: str | None = None,
        text: int = COMPONENTS,
        event: Sequence[str] = (),
        published: str | None = None,
        timezone: str = "UTC",
        event_in_f: Sequence[str] = (),
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
        self.method = method
        self.numbers = numbers
        self.text = text
        self.event = event
        self.published = published
        self.timezone = timezone
        self.event_in_f = event_in_f

    def fit(self, log: EventLog, progress: Callable[[Step], None] | None = None) -> FeatureBuilder:
        """Learn from a raw log of random exploration.

        Args:
            log: identifies its visitors, and has raw profiles of users and articles.
            progress: called after each iteration of the regression.
        """
        self._check()
        visitors = raw_visitors(log, self._needs_articles)
        columns = () if log.decisions is None else tuple(log.decisions.column_names)
        self._check_events(log.times is not None, columns, visitors.ids)

        def regress(users: Sparse, articles: Floats) -> BilinearLogistic:
            shown = log.shown_index
            check_articles(articles[np.unique(shown)])
            return self.regression().fit_events(
                users, articles, visitors.number, shown, log.payoff, progress
            )

        return self._fit(RawProfiles(visitors.profiles, log.article_profiles), regress)

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
        source, profiles, article_profiles, ids = raw_folder(folder, self._needs_articles)
        self._check_events(source.contents.timed, source.contents.decisions, ids)

        def regress(users: Sparse, articles: Floats) -> BilinearLogistic:
            model = self.regression()
            if passes is None:
                return model.fit_folder(users, articles, source, in_memory, progress)
            return model.fit_stream(users, articles, partial(visits_of, source), passes, progress)

        return self._fit(RawProfiles(profiles, article_profiles), regress)

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
        visitors = raw_visitors(first, self._needs_articles)
        profiles = visitors.profiles
        columns = () if first.decisions is None else tuple(first.decisions.column_names)
        self._check_events(first.times is not None, columns, visitors.ids)

        def regress(users: Sparse, articles: Floats) -> BilinearLogistic:
            events = partial(events_of, parts)
            return self.regression().fit_stream(users, articles, events, passes, progress)

        return self._fit(RawProfiles(profiles, first.article_profiles), regress)

    def apply(self, log: EventLog, keep_profiles: bool = False) -> EventLog:
        """The same events with these features in place of the log's contexts and features.

        Args:
            log: identifies its visitors, and has raw profiles of users and articles.
            keep_profiles: whether the new log has them too. Not with features of events: each
                event has a context of its own then.
        """
        check_is_fitted(self)
        described = hasattr(self, "article_side_")
        contexts = self.users(raw_visitors(log, described).profiles)
        features = self.articles(log.article_profiles) if described else None
        if self.event_:
            if keep_profiles:
                raise ValueError(
                    "raw profiles cannot be kept with features of events: each event has a context "
                    "of its own; keep the raw log beside the new one"
                )
            return with_event_features(log, self.event_, contexts, features, self.identity)
        return with_features(log, contexts, features, keep_profiles, self.identity)

    def users(self, profiles: Any) -> npt.NDArray[np.float32]:
        """(V, d) the contexts of users, from a table of raw profiles."""
        check_is_fitted(self)
        found = self.user_side_.many(engine(self.engine), profiles, self.unknown)
        return found.astype(np.float32)

    def articles(self, profiles: Any) -> Floats:
        """(A, m) the features of articles, from a table of raw profiles."""
        side = self._side("article_side_")
        field = self.event_.published
        if field is not None:
            profiles = without_field(as_profiles("profiles", profiles), field)
        return side.many(engine(self.engine), profiles, self.unknown)

    def user(self, profile: Mapping[str, Any]) -> Floats:
        """(d,) the context of one user, from a dict: field -> value.

        A value is a category (a string), a list of categories, a number, a boolean, a date (ISO
        8601, or Python's) or text, as it was when the builder was fitted. A field may be left out,
        or None: missing. Categories that were not there then are ignored, and counted in `unknown`.
        """
        found = self._side("user_side_").one(profile, self.unknown)
        return found.astype(np.float32).astype(np.float64)  # as a log keeps contexts

    def article(self, profile: Mapping[str, Any]) -> Floats:
        """(m,) the features of one article, likewise."""
        side, field = self._side("article_side_"), self.event_.published
        if field is not None and field in profile:
            profile = {name: value for name, value in profile.items() if name != field}
        return side.one(profile, self.unknown)

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

        users = self._side("user_side_")
        return identity_of(users, getattr(self, "article_side_", None), self.event_)

    def _side(self, name: str) -> FittedSide:
        # Not check_is_fitted first: it would take most of the time of one profile.
        found: FittedSide | None = getattr(self, name, None)
        if found is None:
            check_is_fitted(self)
            raise ValueError(
                "this feature model has no article features: the log that it was fitted on has no "
                "profiles of articles"
            )
        return found

    @property
    def _needs_articles(self) -> bool:
        return self.method not in NEED_NO_ARTICLES

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

    def _fit(self, raw: RawProfiles, regress: Regress) -> FeatureBuilder:
        settings = Settings(
            clusters=self.clusters,
            article_clusters=self.article_clusters or self.clusters,
            support=self.support,
            article_support=self.article_support,
            distances=self.distances,
            components=self.components,
            numbers=self.numbers,
            text=self.text,
            above=self.above,
            share=self.share,
            engine=engine(self.engine),
            seed=self.seed,
        )

        def checked(users: Sparse, articles: Floats) -> BilinearLogistic:
            model = regress(users, articles)
            check_articles(articles[model.shown_ > 0])
            return model

        declared = self._declared()
        field = published_field(declared, raw.articles)
        declared = replace(declared, published=field)
        raw = raw._replace(articles=without_field(raw.articles, field))
        if self._needs_articles and raw.articles is None:
            raise ValueError(
                f"method {self.method} needs profiles of articles, and {field} is all that they "
                "have; direct and pca do without"
            )
        found = METHODS[self.method](settings, raw, checked)
        self.learn(found.users, found.articles, found.model, found.groups, declared)
        return self

    def learn(
        self,
        users: FittedSide,
        articles: FittedSide | None,
        model: BilinearLogistic | None,
        groups: Groups | None,
        event: EventFeatures | None = None,
    ) -> None:
        """Set what was learned elsewhere. There are no attributes for what there is not."""
        made = {
            "user_side_": users,
            "article_side_": articles,
            "model_": model,
            "means_": None if groups is None else groups.means,
            "sizes_": None if groups is None else groups.sizes,
            "histogram_": None if groups is None else groups.histogram,
        }
        for name, value in made.items():
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)
        self.event_ = event or EventFeatures(())
        self.unknown = Counter()

    def _declared(self) -> EventFeatures:
        return EventFeatures.of(self.event, self.published, self.timezone, self.event_in_f)

    def _check_events(self, timed: bool, columns: tuple[str, ...], ids: Any | None) -> None:
        known = ids is None or ids.null_count < len(ids)
        check_events(self._declared(), timed, columns, known)

    def _memberships(self, profiles: Any) -> npt.NDArray[np.float32]:
        if self.method != CLUSTERS:
            raise ValueError(f"method {self.method} makes no clusters of users")
        return self.users(profiles)[:, : self.clusters]

    def _check(self, passes: int | None = None) -> None:
        if passes is not None and passes < 1:
            raise ValueError(f"passes must be at least 1, got {passes!r}")
        if self.method not in METHODS:
            known = ", ".join(METHODS)
            raise ValueError(f"method must be one of {known}, got {self.method!r}")
        if self.numbers is not None:
            check_numbers(self.numbers)
        self._declared()
        if self.text < 1:
            raise ValueError(f"text must be at least 1 number, got {self.text!r}")
        if self.distances not in (WEIGHTED, PLAIN):
            raise ValueError(f"distances must be {WEIGHTED} or {PLAIN}, got {self.distances!r}")
        for name in ("clusters", "article_clusters"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}")
        if self.components < 0:
            raise ValueError(f"components must be >= 0, got {self.components!r}")
