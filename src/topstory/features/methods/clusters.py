"""Memberships in a few clusters of users who like the same articles (paper, §5.2.2)."""

from __future__ import annotations

from topstory.features.clustering.fit import Clustered, EncodedProfiles, cluster
from topstory.features.methods.method import (
    Fitted,
    RawProfiles,
    Regress,
    Settings,
    article_encoder,
    dense,
    user_encoder,
)
from topstory.features.regression.bilinear import BilinearLogistic


def fit(settings: Settings, raw: RawProfiles, regress: Regress) -> Fitted:
    """A bilinear logistic regression of clicks, then clusters in its projection."""
    _, model, found = clustered(settings, raw, regress)
    return Fitted(found.users, found.articles, model, found.groups)


def clustered(
    settings: Settings, raw: RawProfiles, regress: Regress
) -> tuple[EncodedProfiles, BilinearLogistic, Clustered]:
    """The profiles encoded, the regression, and the clusters in its projection."""
    users = user_encoder(settings, raw.users)
    articles = article_encoder(settings, raw.articles)
    encoded = EncodedProfiles(
        users, articles, users.transform(raw.users), dense(articles, raw.articles)
    )
    model = regress(encoded.users, encoded.articles)
    found = cluster(
        settings.engine,
        model,
        encoded,
        settings.soft(settings.clusters),
        settings.soft(settings.article_clusters),
        settings.distances,
        settings.components,
    )
    return encoded, model, found
