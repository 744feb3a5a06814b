"""Contexts, payoffs, profiles and articles, as the service takes them in: checked, or refused."""

from __future__ import annotations

from datetime import UTC, datetime
from math import hypot, inf
from typing import Any

import numpy as np

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest, FeedbackRequest, LeversRequest
from topstory.serving.config.feature_model import FeatureModel, events_of
from topstory.serving.journal.clock import as_microseconds
from topstory.serving.journal.records import ArticleFacts, Levers
from topstory.serving.security.decision_ids import Signer

Receipt = tuple[int, int]  # of a decision, signed: its number, and when it expires


class OutOfRange(ApiError):
    """A context or payoff outside the configured range."""

    def __init__(self, reason: str, *parts: str) -> None:
        super().__init__(422, reason, "".join(parts))


def context_of(
    user: tuple[float, ...] | dict[str, object],
    features: FeatureModel | None,
    dimension: int,
    limit: float,
    norm: float = inf,
) -> tuple[float, ...]:
    """The numbers of a context or a raw profile.

    >>> context_of((0.5, 1.0), None, 2, 1000.0)
    (0.5, 1.0)
    """
    if isinstance(user, dict):
        user = _built(features, "user", user)
    if len(user) != dimension:
        raise ApiError(
            422, "bad_context", f"a context has {dimension} numbers here, got {len(user)}"
        )
    for value in user:
        if not -limit <= value <= limit:
            raise ApiError(422, "bad_context", f"a context's numbers are from {-limit} to {limit}")
    if hypot(*user) > norm:
        raise OutOfRange(
            *("bad_context", f"the length of a context is at most {norm:.4g} here, got "),
            f"{hypot(*user):.4g}: scale contexts down, or have `limits.context_norm` raised",
        )
    return user


def redeemed(
    signer: Signer, feedback: FeedbackRequest, payoffs: tuple[float, float], now: int
) -> Receipt:
    """Which decision the feedback is for; ApiError if its payoff cannot be taken."""
    low, high = payoffs
    if not low <= feedback.payoff <= high:
        raise OutOfRange(
            *("bad_payoff", f"a payoff is a number from {low:g} to {high:g} here, got "),
            f"{feedback.payoff:g}: `limits.payoffs` sets the range",
        )
    number, expires = signer.check(feedback.decision)
    if now > expires:
        raise ApiError(410, "expired_decision", "the window for this decision's feedback is over")
    return number, expires


def facts_of(
    article: str,
    request: ArticleRequest,
    model: FeatureModel | None,
    limit: float,
    before: ArticleFacts | None = None,
    now: int = 0,
) -> ArticleFacts:
    """The article as the journal keeps it.

    If articles' age counts, it came out when its profile says; else when it may first be shown;
    else when it was first placed: that is `now`, unless it was there `before`.

    >>> facts_of("rain", ArticleRequest(features=(0.5, 1.0), title="Rain"), None, 1000.0).features
    (0.5, 1.0)
    """
    features = request.features
    if request.profile is not None:
        if features is not None:
            raise ApiError(422, "bad_article", "give features or a profile, not both")
        features = _built(model, "article", request.profile)
    if features is not None and not all(-limit <= value <= limit for value in features):
        raise ApiError(422, "bad_article", f"an article's features are from {-limit} to {limit}")
    begins = _time("from", request.begins)
    ends = _time("until", request.ends)
    if begins is not None and ends is not None and begins >= ends:
        raise ApiError(422, "bad_article", "`from` must come before `until`")
    return ArticleFacts(
        *(article, features, request.title, request.link, begins, ends),
        summary=request.summary,
        picture=request.picture,
        published=_published(request, model, begins, before, now),
    )


def levers_of(request: LeversRequest) -> Levers | None:
    """The levers as the journal keeps them; None: none is set.

    >>> levers_of(LeversRequest(boost=2.0)).boost, levers_of(LeversRequest())
    (2.0, None)
    """
    pin = request.pin
    until = None if pin is None else _time("until", pin.until)
    slot = None if pin is None else pin.slot
    found = Levers(slot, until, request.boost, request.max_shows, request.max_share)
    return None if found == Levers() else found


def _published(
    request: ArticleRequest,
    model: FeatureModel | None,
    begins: int | None,
    before: ArticleFacts | None,
    now: int,
) -> int | None:
    declared = events_of(model)
    field = None if declared is None else declared.published
    if field is None:
        return None
    given = None if request.profile is None else request.profile.get(field)
    if given is not None:
        try:
            when = datetime.fromisoformat(given) if isinstance(given, str) else None
        except ValueError:
            when = None
        if when is None:
            message = f"the profile cannot be used: {field!r} must be a date such as 2009-05-01"
            raise ApiError(422, "bad_profile", f"{message} or 2009-05-01T12:00:00Z, got {given!r}")
        return _time(field, when.replace(tzinfo=UTC) if when.tzinfo is None else when)
    if begins is not None:
        return begins
    return now if before is None or before.published is None else before.published


def _time(field: str, when: datetime | None) -> int | None:
    if when is None:
        return None
    try:
        return as_microseconds(when.astimezone(UTC))
    except OverflowError:
        message = f"`{field}` must be in the years 1 to 9999 in UTC, got {when.isoformat()}"
        raise ApiError(422, "bad_article", message) from None


def _built(model: FeatureModel | None, side: str, profile: dict[str, Any]) -> tuple[float, ...]:
    """The features of a raw profile, of a `user` or an `article`."""
    if model is None:
        raise ApiError(422, "no_feature_model", "raw profiles need a feature model: set `features`")
    build = model.user if side == "user" else model.article
    try:
        return tuple(np.asarray(build(profile), np.float64).tolist())
    except (KeyError, TypeError, ValueError) as error:
        raise ApiError(422, "bad_profile", f"the profile cannot be used: {error}") from None
