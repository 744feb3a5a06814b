"""Policies as sums: merged, or given another prior, without a replay of what they learned.

What a model learned is a sum over trials, beside its prior. So the sums of two policies are those
of one that learned from both, and a sum goes with any prior.
"""

from __future__ import annotations

from typing import Any

from topstory.feature_identity import same_feature_model
from topstory.models.linear import LinearModel
from topstory.models.model import Model
from topstory.models.priors.sums import ArticleSums
from topstory.policies.policy import Policy


def merged(one: Policy, other: Policy) -> Policy:
    """What both learned, with the prior, the explorer and the seed of `one`."""
    _check(one, other)
    same_feature_model([("the policy", one.feature_model), ("the other", other.feature_model)])
    whole = one.copy()
    whole.trials += other.trials
    whole.decisions += other.decisions
    _introduce(whole.model, other.model)
    if other.model.dimension is not None:
        absorb(whole.model, other.model.sums())
    return whole


def absorb(model: Model, sums: ArticleSums) -> None:
    """Add sums over trials to what a model has learned; the articles in it must be known."""
    if model.learns:
        know(model, model.sums().plus(sums))


def know(model: Model, sums: ArticleSums) -> None:
    """Know this instead, and use as much of the prior as it says."""
    model.take(sums)
    if isinstance(model, LinearModel):
        model.weigh()


def with_prior(policy: Policy, changes: dict[str, Any]) -> Policy:
    """The policy as it would be if it had had another prior or ridge from the start."""
    model = policy.model.restarted(**changes)
    model.use_event_features(policy.model.event_features)
    _introduce(model, policy.model)
    if policy.model.dimension is not None:
        model.see(policy.model.dimension)
        know(model, policy.model.sums())
    twin = Policy(model, policy.explorer, policy.seed, policy.half_life)
    twin.tick = policy.tick
    twin.decisions, twin.trials = policy.decisions, policy.trials
    known = [("the policy", policy.feature_model), ("the prior", twin.feature_model)]
    twin.feature_model = same_feature_model(known) or policy.feature_model or twin.feature_model
    return twin


def _introduce(model: Model, other: Model) -> None:
    """Add the other model's articles, and see contexts like its own."""
    for article in other.roster.ids:
        if article is not None:
            model.add(article, other.features_of(article))
    if other.dimension is not None:
        model.see(other.dimension)


def _check(one: Policy, other: Policy) -> None:
    if not isinstance(other, Policy):
        raise TypeError(f"a policy is merged with another policy, got {other!r}")
    if not (one.model.additive and other.model.additive):
        raise TypeError(
            f"what the {one.model.name} model learned is no sum over trials: what a trial teaches "
            "depends on those before it"
        )
    if one.half_life is not None or other.half_life is not None:
        raise ValueError(
            "policies with a half-life cannot be merged: each counts its trials by its own clock"
        )
    if one.model.name != other.model.name:
        raise ValueError(
            f"a {one.model.name} model cannot be merged with a {other.model.name} model: they "
            "learn different things"
        )
    if one.model.callables() or other.model.callables():
        raise ValueError(
            "a model with a function of yours cannot be merged: nobody knows whether both have "
            "the same function"
        )
    if one.model.event_features != other.model.event_features:
        raise ValueError(
            "the policies learned from contexts with other features of the event: "
            f"{one.model.event_features} numbers of one belong to its articles, and "
            f"{other.model.event_features} of the other"
        )
    if isinstance(one.model, LinearModel):
        return
    ours, theirs = (each.model.parameters() for each in (one, other))
    if ours != theirs:
        raise ValueError(
            f"the two {one.model.name} models were made with other parameters "
            f"({', '.join(sorted(set(ours) | set(theirs)))}), so what they learned does not add up"
        )
