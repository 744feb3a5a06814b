"""Settings that follow from when a data folder was begun, unless the configuration sets them."""

from __future__ import annotations

from math import sqrt
from typing import Any

import msgspec

from topstory.serving.config.feature_model import FeatureModel, events_of
from topstory.serving.config.schema import Config, plain
from topstory.serving.security.decision_ids import new_secret
from topstory.serving.state.state import State

# Of a new data folder. Contexts as the paper has them, and as feature models make them, have
# memberships that sum to 1, and the constant: they are at most √2 long.
CLICKS, CONTEXT_NORM = (0.0, 1.0), 1.5


def inherited(config: Config, state: State) -> Config:
    """The configuration with what it leaves open.

    A folder begun before these settings existed goes on as it was: its visitors keep their
    buckets, and all payoffs and contexts up to `limits.magnitude` are accepted.
    """
    held, limits = state.config, config.limits
    unbounded = _is_unbounded(state)
    secret = config.bucket_secret
    if secret is None:
        kept = held.get("bucket_secret", "" if unbounded else new_secret())
        assert isinstance(kept, str)
        secret = kept
    norm = limits.magnitude * sqrt(config.context) if unbounded else CONTEXT_NORM
    payoffs = (-limits.magnitude, limits.magnitude) if unbounded else CLICKS
    return msgspec.structs.replace(
        config,
        bucket_secret=secret,
        limits=msgspec.structs.replace(
            limits,
            context_norm=norm if limits.context_norm is None else limits.context_norm,
            payoffs=payoffs if limits.payoffs is None else limits.payoffs,
        ),
    )


def recorded(config: Config, state: State, features: FeatureModel | None = None) -> dict[str, Any]:
    """The configuration as the journal records it: without secrets, but with that of buckets.

    With the identity of the feature model, and its features of events. Without a model, the last
    that was used is kept.
    """
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(plain(config)))
    found |= {"bucket_secret": config.bucket_secret, "unbounded": _is_unbounded(state)}
    event = events_of(features)
    for key, value in (
        ("feature_model", None if features is None else features.identity),
        ("event", None if event is None else event.described()),
        ("event_numbers", None if event is None else len(event.columns)),
        ("event_varying", None if event is None else event.per_article),
        ("event_features", None if event is None else len(event.feature_columns)),
    ):
        kept = value or (state.config.get(key) if features is None else None)
        if kept:
            found[key] = kept
    return found


def _is_unbounded(state: State) -> bool:
    return bool(state.config.get("unbounded", bool(state.pools)))
