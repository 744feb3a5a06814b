"""The OpenAPI description, from the same types that decode the requests."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from topstory.serving.api.errors import ErrorAnswer
from topstory.serving.api.messages import (
    Acknowledged,
    ArticleId,
    ArticleRequest,
    ArticleView,
    DecideRequest,
    Decision,
    FeedbackRequest,
    Health,
    RemovedAnswer,
    Stats,
)
from topstory.serving.config.schema import LimitsConfig

TYPES: tuple[Any, ...] = (
    *(DecideRequest, Decision, FeedbackRequest, Acknowledged, ArticleRequest, ArticleView),
    *(RemovedAnswer, Stats, Health, ErrorAnswer),
)


@cache
def openapi(pools: tuple[str, ...], dimension: int, limits: LimitsConfig) -> dict[str, Any]:
    """The document of a service with these pools, so many numbers in a context, and these limits.

    >>> sorted(openapi(("front",), 6, LimitsConfig())["paths"])[-1]
    '/v1/stats'
    """
    _, components = msgspec.json.schema_components(
        TYPES, ref_template="#/components/schemas/{name}"
    )
    bounds = {"minimum": -limits.magnitude, "maximum": limits.magnitude}
    user = _numbers(components["DecideRequest"]["properties"]["user"])
    user |= {"minItems": dimension, "maxItems": dimension}
    for numbers in (user, _numbers(components["ArticleRequest"]["properties"]["features"])):
        numbers["items"] |= bounds
    components["FeedbackRequest"]["properties"]["payoff"] |= bounds
    pool = {"type": "string", "enum": list(pools)}
    article = "/v1/pools/{pool}/articles/{article}"
    paths: dict[str, dict[str, Any]] = {
        "/v1/decide": {
            "post": _operation(
                *("decide", "Show an article to a user", "decide"),
                body=_one_or_many(DecideRequest, limits.batch),
                answer=_one_or_refused(Decision),
            )
        },
        "/v1/feedback": {
            "post": _operation(
                *("feedback", "Say what a decision paid", "feedback"),
                body=_one_or_many(FeedbackRequest, limits.batch),
                answer=_one_or_refused(Acknowledged),
            )
        },
        "/v1/pools/{pool}/articles": {
            "get": _operation(
                *("articles", "Every article of a pool, and how it does", "read"),
                answer={"type": "array", "items": _ref(ArticleView)},
            ),
            "parameters": [_parameter("pool", pool)],
        },
        article: {
            "get": _operation("article", "One article", "read", answer=_ref(ArticleView)),
            "put": _operation(
                *("put_article", "Add an article, or change it", "edit"),
                body=_ref(ArticleRequest),
                answer=_ref(ArticleView),
            ),
            "delete": _operation(
                "remove_article", "Forget an article", "edit", answer=_ref(RemovedAnswer)
            ),
            "parameters": [
                _parameter("pool", pool),
                _parameter("article", msgspec.json.schema(ArticleId)),
            ],
        },
        "/v1/stats": {"get": _operation("stats", "The service", "read", answer=_ref(Stats))},
        "/metrics": {
            "get": _operation("metrics", "For Prometheus", "read", answer=None),
        },
        "/health/live": {
            "get": _operation("live", "The process answers", None, answer=_ref(Health))
        },
        "/health/ready": {
            "get": _operation("ready", "Requests will be granted", None, answer=_ref(Health))
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "topstory",
            "version": version("topstory"),
            "description": "Learn which story to lead with, for each visitor.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    name: str,
    words: str,
    role: str | None,
    *,
    answer: dict[str, Any] | None,
    body: dict[str, Any] | None = None,
) -> dict[str, Any]:
    content = (
        {"text/plain": {"schema": {"type": "string"}}}
        if answer is None
        else {"application/json": {"schema": answer}}
    )
    told: dict[str, Any] = {
        "operationId": name,
        "summary": words,
        "responses": {
            "200": {"description": "granted", "content": content},
            "default": {
                "description": "refused; `reason` is for machines, `message` for people",
                "content": {"application/json": {"schema": _ref(ErrorAnswer)}},
            },
        },
    }
    if name == "ready":
        told["responses"]["503"] = {"description": "not ready", "content": content}
    if role is not None:
        told["security"] = [{"key": []}]
        told["description"] = f"Needs a key with the role `{role}`."
    if body is not None:
        told["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": body}},
        }
    return told


def _ref(kind: type) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _numbers(field: dict[str, Any]) -> dict[str, Any]:
    """The part of a field's description that says which arrays it takes."""
    found: dict[str, Any] = next(kind for kind in field["anyOf"] if kind["type"] == "array")
    return found


def _one_or_many(kind: type, most: int) -> dict[str, Any]:
    return {"anyOf": [_ref(kind), {"type": "array", "items": _ref(kind), "maxItems": most}]}


def _one_or_refused(kind: type) -> dict[str, Any]:
    each = {"anyOf": [_ref(kind), _ref(ErrorAnswer)]}
    return {"anyOf": [_ref(kind), {"type": "array", "items": each}]}


def _parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schema}
