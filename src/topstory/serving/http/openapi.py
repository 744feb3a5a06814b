"""The OpenAPI document, generated from the table of endpoints and its message types."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from topstory.serving.api.endpoints import ENDPOINTS, IDEMPOTENCY_KEY, PARAMETERS, EditKey, Endpoint
from topstory.serving.api.errors import ErrorAnswer
from topstory.serving.config.limits import LimitsConfig

Schema = dict[str, Any]
_REFERENCE = "#/components/schemas/{name}"


@cache
def openapi(pools: tuple[str, ...], dimension: int, limits: LimitsConfig) -> dict[str, Any]:
    """The document of a service with these pools, context length and limits.

    >>> sorted(openapi(("front",), 6, LimitsConfig())["paths"])[-1]
    '/v1/stats'
    """
    described = [endpoint for endpoint in ENDPOINTS if endpoint.described]
    kinds = [kind for endpoint in described for kind in (endpoint.request, endpoint.response)]
    schemas, components = msgspec.json.schema_components(
        [*(kind for kind in kinds if kind is not None), ErrorAnswer], ref_template=_REFERENCE
    )
    found = iter(schemas)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in described:
        request = None if endpoint.request is None else next(found)
        operations = paths.setdefault(endpoint.path, {})
        operations[endpoint.method.lower()] = _operation(
            endpoint, request, next(found), limits.batch
        )
        if endpoint.parameters:
            operations["parameters"] = [_parameter(name, pools) for name in endpoint.parameters]
    _set_limits(components, dimension, limits)
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
    endpoint: Endpoint[Any], request: Schema | None, response: Schema, batch: int
) -> dict[str, Any]:
    error = {"$ref": _REFERENCE.format(name=ErrorAnswer.__name__)}
    if endpoint.batch:
        request = _one_or_many(request, {"items": request, "maxItems": batch})
        response = _one_or_many(response, {"items": {"anyOf": [response, error]}})
    kind = "text/plain" if endpoint.response is str else "application/json"
    content = {kind: {"schema": response}}
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "responses": {
            "200": {"description": "success", "content": content},
            **{
                str(status): {"description": why, "content": content}
                for status, why in endpoint.statuses
            },
            "default": {
                "description": "error; `reason` is for programs, `message` for people",
                "content": {"application/json": {"schema": error}},
            },
        },
    }
    if endpoint.role is not None:
        operation["security"] = [{"key": []}]
        operation["description"] = f"Requires a key with the role `{endpoint.role}`."
    if endpoint.keyed:
        operation["parameters"] = [
            {
                "name": IDEMPOTENCY_KEY,
                "in": "header",
                "description": "an id of this edit; a request with the same one changes nothing",
                "schema": msgspec.json.schema(EditKey),
            }
        ]
    if request is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": request}},
        }
    return operation


def _one_or_many(one: Schema | None, many: Schema) -> Schema:
    return {"anyOf": [one, {"type": "array", **many}]}


def _parameter(name: str, pools: Iterable[str]) -> Schema:
    schema = (
        {"type": "string", "enum": list(pools)}
        if name == "pool"
        else msgspec.json.schema(PARAMETERS.get(name, str))
    )
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _set_limits(components: dict[str, Any], dimension: int, limits: LimitsConfig) -> None:
    """Add the bounds that only the configuration knows."""
    magnitude = limits.magnitude
    bounds = {"minimum": -magnitude, "maximum": magnitude}
    user = _numbers(components["DecideRequest"]["properties"]["user"])
    user |= {"minItems": dimension, "maxItems": dimension}
    for numbers in (user, _numbers(components["ArticleRequest"]["properties"]["features"])):
        numbers["items"] |= bounds
    low, high = limits.payoffs or (-magnitude, magnitude)
    components["FeedbackRequest"]["properties"]["payoff"] |= {"minimum": low, "maximum": high}


def _numbers(field: Schema) -> Schema:
    """The part of a field's schema that describes its arrays."""
    found: Schema = next(kind for kind in field["anyOf"] if kind["type"] == "array")
    return found
