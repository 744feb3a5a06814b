"""What every method takes, and what it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from topstory.engines import Engine
from topstory.events.columns.profiles import as_profiles, profile_kinds
from topstory.features.clustering.fit import Groups
from topstory.features.clustering.fitted_side import FittedSide
from topstory.features.clustering.memberships import MembershipMap
from topstory.features.clustering.soft_clusters import SoftClusters
from topstory.features.encoding.categories import Sparse
from topstory.features.encoding.encoder import Encoder, Threshold
from topstory.features.fields.profile_encoder import BINS, ProfileEncoder
from topstory.features.regression.bilinear import BilinearLogistic
from topstory.kernels.compilation import Floats

AnyEncoder = Encoder | ProfileEncoder
Regress = Callable[[Sparse, Floats], BilinearLogistic]  # who clicks on what, from φ_u and φ_a
PAPER_SUPPORT = 0.1
MAX_SAMPLE = 200_000  # users to learn directions from


@dataclass(frozen=True)
class Settings:
    """The parameters of a `FeatureBuilder`, as methods need them."""

    clusters: int
    article_clusters: int
    support: Threshold | None
    article_support: Threshold
    distances: str
    components: int
    numbers: str | None
    text: int
    above: float
    share: float
    engine: Engine
    seed: int

    def soft(self, clusters: int) -> SoftClusters:
        """Clusters, not fitted."""
        return SoftClusters(clusters, above=self.above, share=self.share, seed=self.seed)


class RawProfiles(NamedTuple):
    """Raw profiles of users and articles."""

    users: Any  # a table
    articles: Any | None


class Fitted(NamedTuple):
    """What a method learned."""

    users: FittedSide
    articles: FittedSide | None  # None: the log says nothing of its articles
    model: BilinearLogistic | None = None  # for methods that learn from clicks
    groups: Groups | None = None  # if it makes clusters of users


class Method(Protocol):
    """A way of making features."""

    def __call__(self, settings: Settings, raw: RawProfiles, regress: Regress) -> Fitted:
        """Learn from profiles, and by `regress` from clicks if it must."""
        ...


def user_encoder(settings: Settings, profiles: Any) -> AnyEncoder:
    """The paper's encoding of users, which has categories only; or that of any kinds."""
    support = PAPER_SUPPORT if settings.support is None else settings.support
    return _encoder(settings, profiles, support, "users", apart=True)


def article_encoder(settings: Settings, profiles: Any) -> AnyEncoder:
    """The same of articles."""
    return _encoder(settings, profiles, settings.article_support, "articles", apart=False)


def _encoder(
    settings: Settings, profiles: Any, support: Threshold, who: str, apart: bool
) -> AnyEncoder:
    table = as_profiles("profiles", profiles)
    if set(profile_kinds(table).values()) <= {"category", "categories"}:
        paper = Encoder(support, apart=apart).fit(table)
        paper.check_kept(who)
        return paper
    encoder = ProfileEncoder(
        support, settings.numbers or BINS, text=settings.text, seed=settings.seed
    ).fit(table)
    if encoder.n_features_out_ == 1:
        raise ValueError(f"no field of the {who} tells them apart: {unused(encoder)}")
    return encoder


def unused(encoder: ProfileEncoder) -> str:
    """The fields that are not used, and why."""
    return "; ".join(
        f"{report.field}: {report.note}" for report in encoder.report() if not report.kept
    )


def dense(encoder: AnyEncoder, profiles: Any) -> Floats:
    """(rows, D) φ."""
    found: Floats = encoder.transform(profiles).toarray().astype(np.float64)
    return found


def sampled(users: Sparse, seed: int) -> Sparse:
    """Some of the rows, where there are many."""
    if users.shape[0] <= MAX_SAMPLE:
        return users
    random = np.random.default_rng(seed)
    return users[np.sort(random.choice(users.shape[0], MAX_SAMPLE, replace=False))]


def linear_map(weights: Floats, users: Sparse) -> MembershipMap:
    """φᵀ`weights`, centred, and scaled so that 19 of 20 rows are at most 1 long.

    Longer ones are shortened to 1, as the map does.
    """
    found: Floats = np.asarray(users @ weights)
    mean = found.mean(axis=0)
    longest = float(np.quantile(np.linalg.norm(found - mean, axis=1), 0.95)) or 1.0
    return MembershipMap(np.ascontiguousarray(weights / longest), -mean / longest, 0)
