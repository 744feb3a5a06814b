"""A user for whom an article is asked, checked at the door."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topstory.serving.api.errors import Refused
from topstory.serving.api.messages import DecideRequest, Decision
from topstory.serving.config.feature_model import FeatureModel
from topstory.serving.service.replies import Reply
from topstory.serving.state.decider import Decider


class Asking(NamedTuple):
    """Who asks, and where the answer goes."""

    asked: DecideRequest
    decider: Decider
    user: tuple[float, ...]
    reply: Reply[Decision]
    looked: int = 0  # when the journal had nothing for the same request

    def bucket(self, number: int) -> int:
        """The bucket of the visitor; without any id he is a stranger, a new one every time."""
        asked = self.asked
        return self.decider.traffic.bucket(asked.visitor or asked.request or f"#{number}")


def context_of(
    user: tuple[float, ...] | dict[str, object],
    features: FeatureModel | None,
    dimension: int,
    limit: float,
) -> tuple[float, ...]:
    """The numbers of a context or a raw profile; else it is refused.

    >>> context_of((0.5, 1.0), None, 2, 1000.0)
    (0.5, 1.0)
    """
    if isinstance(user, dict):
        if features is None:
            raise Refused(
                422, "no_feature_model", "raw profiles need a feature model: set `features`"
            )
        try:
            user = tuple(float(value) for value in np.asarray(features.user(user)))
        except (KeyError, TypeError, ValueError) as error:
            raise Refused(422, "bad_profile", f"the profile cannot be used: {error}") from None
    if len(user) != dimension:
        raise Refused(
            422, "bad_context", f"a context has {dimension} numbers here, got {len(user)}"
        )
    if not all(-limit <= value <= limit for value in user):
        raise Refused(422, "bad_context", f"a context's numbers are from {-limit} to {limit}")
    return user
