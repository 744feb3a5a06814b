"""Shows and payoffs, by bucket and by user segment."""

from __future__ import annotations

import msgspec

from topstory.serving.api.messages import BUCKETS


class Tally(msgspec.Struct):
    """Shows and payoffs: [bucket][segment]."""

    shows: list[list[int]]
    payoff: list[list[float]]

    @classmethod
    def empty(cls, segments: int) -> Tally:
        """Nothing yet."""
        return cls([[0] * segments for _ in BUCKETS], [[0.0] * segments for _ in BUCKETS])


def segment_of(user: list[float] | tuple[float, ...]) -> int:
    """The user's segment: the largest feature, the constant aside (the paper's closest cluster).

    >>> segment_of([0.1, 0.7, 0.2, 1.0])
    1
    """
    features = user[:-1]
    return features.index(max(features)) if features else 0
