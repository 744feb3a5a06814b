"""What `topstory prior --json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from topstory.models import Prior


class PriorReport(msgspec.Struct, frozen=True):
    """A prior: the whole document."""

    format: Annotated[str, Meta(description="`topstory-prior`")]
    version: Annotated[int, Meta(description="1; fields may be added under the same version")]
    log: Annotated[str, Meta(description="the log as given")]
    out: Annotated[str, Meta(description="the file of the prior")]
    events: Annotated[int, Meta(description="events that it was learned from")]
    articles: Annotated[int, Meta(description="articles that they showed")]
    context: Annotated[int, Meta(description="length of a context")]
    article_features: Annotated[
        int, Meta(description="features of an article; 0: too many for hybrid models")
    ]
    feature_model: Annotated[
        str | None, Meta(description="identity of the feature model; null: unknown, or none")
    ]
    noise: Annotated[float, Meta(description="variance of a payoff around its expectation")]
    mean_payoff: Annotated[float, Meta(description="averages: where a new article starts")]
    mean_trials: Annotated[float, Meta(description="averages: what that counts for, in trials")]
    mean: Annotated[
        tuple[float, ...], Meta(description="disjoint: the coefficients of a new article")
    ]
    ridge: Annotated[float, Meta(description="hybrid: ridge of an article's own part")]
    shared_ridge: Annotated[float, Meta(description="hybrid: ridge of the shared part")]
    weight: Annotated[
        float,
        Meta(description="hybrid: share of what was learned that held in the log's second half"),
    ]


def prior_report(log: str, out: str, prior: Prior) -> PriorReport:
    """The report of a prior."""
    payoff, trials = prior.averages[0].tolist()
    return PriorReport(
        format="topstory-prior",
        version=1,
        log=log,
        out=out,
        events=prior.events,
        articles=prior.articles,
        context=prior.dimension,
        article_features=prior.features,
        feature_model=prior.feature_model,
        noise=prior.noise,
        mean_payoff=payoff,
        mean_trials=trials,
        mean=tuple(prior.mean.tolist()),
        ridge=prior.ridge,
        shared_ridge=prior.shared_ridge,
        weight=prior.weight,
    )
