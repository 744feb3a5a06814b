"""A report on a fitted builder: its clusters, its fit, the histogram of memberships."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.features.clustering.fitted_side import FittedSide
from topstory.features.fields.field import FieldReport
from topstory.features.regression.bilinear import BilinearLogistic
from topstory.features.regression.early_stopping import Step
from topstory.kernels.compilation import Floats

if TYPE_CHECKING:
    from topstory.features.builder import FeatureBuilder

MAX_LISTED_CATEGORIES = 5  # categories listed for a cluster


class Liking(msgspec.Struct, frozen=True):
    """A category, and by how much a cluster differs in it from the average."""

    category: str
    by: float  # log-odds of a click for likes; share above that of all users for traits


class ClusterReport(msgspec.Struct, frozen=True):
    """A cluster of users, described by categories."""

    cluster: int
    share: float  # of the users
    likes: tuple[Liking, ...]  # article categories, against the average user
    dislikes: tuple[Liking, ...]
    traits: tuple[Liking, ...]  # user categories that are more frequent in it


class ArticleClusterReport(msgspec.Struct, frozen=True):
    """A cluster of articles, described by categories."""

    cluster: int
    categories: tuple[Liking, ...]  # by how much more an article of it belongs than others do


class TriedMethod(msgspec.Struct, frozen=True):
    """What a method's features were worth on the part of the log that it was not fitted on."""

    method: str
    value: float | None  # payoff per visit; None: it could not be fitted
    lift: float | None  # over the same policy without features: 0.1 is 10 % more
    lift_interval: tuple[float, float] | None
    refused: str = ""  # why it could not be fitted
    policy: str = ""  # that made most of its features
    lead: float | None = None  # of the best over the second
    lead_interval: tuple[float, float] | None = None
    judged_by: str = ""  # replay, or off-policy


class FeatureReport(msgspec.Struct, frozen=True):
    """The report on a feature model."""

    format: str
    version: int
    dimension: int  # numbers of a context, the constant included
    article_features: int
    distances: str
    raw_user_features: int
    raw_article_features: int
    user_fields: tuple[FieldReport, ...]
    article_fields: tuple[FieldReport, ...]
    log_loss: float | None
    auc: float | None
    scored_on: str  # what these are of: "held out", "last batch" or "learned"
    iterations: int  # or batches
    history: tuple[Step, ...]
    clusters: tuple[ClusterReport, ...]
    article_clusters: tuple[ArticleClusterReport, ...]
    user_width: float | None  # of the Gaussian kernel; None: the method makes no clusters
    article_width: float | None
    histogram: tuple[int, ...]  # users by their largest membership, in equal bins from 0 to 1
    # The share of users whose largest membership is above 0.5 (Figure 5: 0.85), and 0.8 (0.40).
    above_half: float | None
    above_four_fifths: float | None
    method: str = "clusters"
    identity: str = ""
    event_numbers: tuple[str, ...] = ()  # of a context, by name: those that change with the event
    tried: tuple[TriedMethod, ...] = ()  # by the method auto, the best first
    event_features: tuple[str, ...] = ()  # those of `event_numbers` that are features f of articles


def describe(builder: FeatureBuilder, tried: tuple[TriedMethod, ...] = ()) -> FeatureReport:
    """The report of a fitted builder, and of what was tried before it was chosen."""
    users = builder.user_side_
    articles: FittedSide | None = getattr(builder, "article_side_", None)
    model: BilinearLogistic | None = getattr(builder, "model_", None)
    counts = getattr(builder, "histogram_", None)

    def above(bound: float) -> float | None:
        if counts is None:
            return None
        edges = np.linspace(0, 1, len(counts) + 1)[:-1]
        return float(counts[edges > bound - 1e-9].sum() / counts.sum())

    return FeatureReport(
        format="topstory-features",
        version=3,
        dimension=users.membership_map.dimension + len(builder.event_.columns),
        article_features=0 if articles is None else articles.membership_map.dimension,
        distances=builder.distances,
        raw_user_features=users.encoder.n_features_out_,
        raw_article_features=0 if articles is None else articles.encoder.n_features_out_,
        user_fields=users.encoder.report(),
        article_fields=() if articles is None else articles.encoder.report(),
        log_loss=None if model is None else model.log_loss_,
        auc=None if model is None else model.auc_,
        scored_on="" if model is None else model.scored_on_,
        iterations=0 if model is None else model.n_iter_,
        history=() if model is None else model.history_,
        clusters=_clusters(builder),
        article_clusters=_article_clusters(articles),
        user_width=None if users.soft is None else users.soft.width_,
        article_width=None if articles is None or articles.soft is None else articles.soft.width_,
        histogram=() if counts is None else tuple(int(count) for count in counts),
        above_half=above(0.5),
        above_four_fifths=above(0.8),
        method=builder.method,
        identity=builder.identity,
        event_numbers=builder.event_.columns,
        tried=tried,
        event_features=builder.event_.feature_columns,
    )


def _clusters(builder: FeatureBuilder) -> tuple[ClusterReport, ...]:
    if not hasattr(builder, "means_"):
        return ()
    names = builder.user_side_.encoder.get_feature_names_out()[:-1]
    tags = builder.article_side_.encoder.get_feature_names_out()[:-1]
    means, sizes = builder.means_, builder.sizes_
    average = sizes @ means / sizes.sum()
    likes = (means - average) @ builder.model_.coef_  # (clusters, M) log-odds
    likes -= likes.mean(axis=1, keepdims=True)  # clicking more on everything is not a preference
    traits = means - average
    return tuple(
        ClusterReport(
            c,
            float(sizes[c] / sizes.sum()),
            likes=_strongest(tags, likes[c, :-1]),
            dislikes=_strongest(tags, -likes[c, :-1], sign=-1.0),
            traits=_strongest(names, traits[c, :-1]),
        )
        for c in range(len(sizes))
    )


def _article_clusters(side: FittedSide | None) -> tuple[ArticleClusterReport, ...]:
    if side is None or side.soft is None:
        return ()
    tags = side.encoder.get_feature_names_out()[:-1]
    # An article with one category alone, encoded: how much it belongs to each cluster.
    rows = np.column_stack([np.eye(len(tags)), np.ones(len(tags))])
    belongs = side.membership_map.many(rows)[:, : side.membership_map.clusters]
    belongs = belongs - belongs.mean(axis=0)
    return tuple(
        ArticleClusterReport(c, _strongest(tags, belongs[:, c]))
        for c in range(side.membership_map.clusters)
    )


def _strongest(
    names: npt.NDArray[np.object_] | Sequence[str], values: Floats, sign: float = 1.0
) -> tuple[Liking, ...]:
    best = [
        at for at in np.argsort(-values, kind="stable")[:MAX_LISTED_CATEGORIES] if values[at] > 0
    ]
    return tuple(Liking(str(names[at]), sign * float(values[at])) for at in best)
