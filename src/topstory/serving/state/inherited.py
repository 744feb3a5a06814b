"""Settings that follow from when a data folder was begun, unless the configuration sets them."""

from __future__ import annotations

from math import sqrt
from typing import Any

import msgspec

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


def recorded(config: Config, state: State, features: str | None = None) -> dict[str, Any]:
    """The configuration as the journal records it: without secrets, but with that of buckets.

    `features`: the identity of the feature model. Without one, the last that was used is kept.
    """
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(plain(config)))
    found |= {"bucket_secret": config.bucket_secret, "unbounded": _is_unbounded(state)}
    identity = features or state.config.get("feature_model")
    return found if identity is None else found | {"feature_model": identity}


def _is_unbounded(state: State) -> bool:
    return bool(state.config.get("unbounded", bool(state.pools)))
