"""Which feature model made a log's contexts, or a policy's: it must be the same one throughout.

A feature model is named by its identity (`FeatureBuilder.identity`), a hash of its content. None
means that it is unknown: the file is older, or its numbers came from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable


class FeatureModelMismatch(ValueError):
    """Two things that go together were made with different feature models.

    >>> issubclass(FeatureModelMismatch, ValueError)
    True
    """


def same_feature_model(parts: Iterable[tuple[str, str | None]]) -> str | None:
    """The one identity that all parts have, given as (what it is, its identity) each.

    None if a part's is unknown. FeatureModelMismatch if two are known and differ.

    >>> same_feature_model([("the policy", "9f2c61d0"), ("the log", "9f2c61d0")])
    '9f2c61d0'
    >>> same_feature_model([("the policy", "9f2c61d0"), ("the log", None)]) is None
    True
    >>> same_feature_model([("the policy", "9f2c61d0"), ("the log", "04e1b7aa")])
    Traceback (most recent call last):
    ...
    topstory.feature_identity.FeatureModelMismatch: the policy was made with feature model \
9f2c61d0, but the log with 04e1b7aa; use one model for both, since the same number means \
something else in another
    """
    listed = list(parts)
    known = [(what, identity) for what, identity in listed if identity is not None]
    for what, identity in known:
        first, expected = known[0]
        if identity != expected:
            raise FeatureModelMismatch(
                f"{first} was made with feature model {expected}, but {what} with {identity}; use "
                "one model for both, since the same number means something else in another"
            )
    return known[0][1] if known and len(known) == len(listed) else None
