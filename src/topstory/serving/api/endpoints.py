"""The table of endpoints: routes, OpenAPI, clients and worker forwarding follow from it.

To add an endpoint, add an entry to `ENDPOINTS` and a handler of the same name to
`topstory.serving.http.admin_routes`. The clients reach it with `client.call(NAME, ...)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from msgspec import Meta

from topstory.serving.api.messages import (
    Acknowledged,
    ArticleId,
    ArticleRequest,
    ArticleView,
    DecideRequest,
    Decision,
    FeedbackRequest,
    Health,
    LeversRequest,
    LeversView,
    PolicyChanged,
    PolicyComparison,
    PolicyRequest,
    PolicyView,
    RemovedAnswer,
    Stats,
)

T = TypeVar("T")

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
METHODS: tuple[Method, ...] = get_args(Method)
Role = Literal["decide", "feedback", "edit", "read", "promote"]
ROLES: tuple[Role, ...] = get_args(Role)
# Of a key that names none. Later roles have to be named: an upgrade gives no key more.
DEFAULT_ROLES: tuple[Role, ...] = ("decide", "feedback", "edit", "read")


@dataclass(frozen=True, kw_only=True)
class Endpoint(Generic[T]):
    """One operation of the API.

    >>> ARTICLE.parameters, ARTICLE.route
    (('pool', 'article'), '/v1/pools/{pool}/articles/{article:path}')
    """

    name: str  # of its handler, and its operation id in OpenAPI
    method: Method
    path: str
    role: Role | None  # that a key needs; None: no key
    summary: str
    response: type[T]  # str: plain text
    request: Any = None  # the type of the body; None: no body
    batch: bool = False  # takes an array of requests too, and answers with an array
    statuses: tuple[tuple[int, str], ...] = ()  # others that come with a response, and why
    described: bool = True  # in the OpenAPI document
    compiles: bool = False  # the first call may wait for the compiler
    idempotent: bool = False  # for POST and PATCH: repeating a request has no further effect
    id_field: str | None = None  # of the body: the id by which the service knows a repeated request
    large: bool = False  # its body may have `limits.policy_bytes`, not only `limits.body_bytes`
    names_key: bool = False  # its handler is told the name of the API key
    keyed: bool = False  # takes an Idempotency-Key, by which the service knows a repeated request
    repeated_reason: str | None = None  # this error on a retry means that an earlier try succeeded

    @property
    def repeatable(self) -> bool:
        """Whether a client may send a request again if it does not know what became of it."""
        return self.idempotent or self.method not in ("POST", "PATCH")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in the path."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def route(self) -> str:
        """The path as Starlette takes it: the last parameter may contain slashes."""
        return re.sub(r"\{(\w+)\}$", r"{\1:path}", self.path)

    @property
    def pattern(self) -> str:
        """A regular expression for its paths."""
        inner = re.sub(r"\{\w+\}$", ".+", self.path)
        return re.sub(r"\{\w+\}", "[^/]+", inner)


# Types of the parameters in paths; others are plain strings.
PARAMETERS: dict[str, Any] = {"article": ArticleId}
IDEMPOTENCY_KEY = "Idempotency-Key"  # the header
EditKey = Annotated[str, Meta(min_length=1, max_length=128)]

DECIDE = Endpoint(
    name="decide",
    method="POST",
    path="/v1/decide",
    role="decide",
    summary="Choose an article for a user",
    request=DecideRequest,
    response=Decision,
    batch=True,
    idempotent=True,
    id_field="request",
)
FEEDBACK = Endpoint(
    name="feedback",
    method="POST",
    path="/v1/feedback",
    role="feedback",
    summary="Report the payoff of a decision",
    request=FeedbackRequest,
    response=Acknowledged,
    batch=True,
    idempotent=True,
)
ARTICLES = Endpoint(
    name="articles",
    method="GET",
    path="/v1/pools/{pool}/articles",
    role="read",
    summary="List the articles of a pool with their results",
    response=list[ArticleView],
)
ARTICLE = Endpoint(
    name="article",
    method="GET",
    path="/v1/pools/{pool}/articles/{article}",
    role="read",
    summary="Get one article with its results",
    response=ArticleView,
)
PUT_ARTICLE = Endpoint(
    name="put_article",
    method="PUT",
    path="/v1/pools/{pool}/articles/{article}",
    role="edit",
    summary="Add or change an article",
    request=ArticleRequest,
    response=ArticleView,
    compiles=True,
    keyed=True,
)
REMOVE_ARTICLE = Endpoint(
    name="remove_article",
    method="DELETE",
    path="/v1/pools/{pool}/articles/{article}",
    role="edit",
    summary="Remove an article and what was learned about it",
    response=RemovedAnswer,
    keyed=True,
    repeated_reason="unknown_article",
)
LEVERS = Endpoint(
    name="levers",
    method="GET",
    path="/v1/pools/{pool}/levers",
    role="read",
    summary="List the levers that are set in a pool, and what they cost",
    response=list[LeversView],
)
PUT_LEVERS = Endpoint(
    name="put_levers",
    method="PUT",
    path="/v1/pools/{pool}/levers/{article}",
    role="edit",
    summary="Pin, boost or limit an article, or undo that",
    request=LeversRequest,
    response=LeversView,
    keyed=True,
)
COST_LEVERS = Endpoint(
    name="levers_cost",
    method="POST",
    path="/v1/pools/{pool}/levers/{article}",
    role="read",
    summary="Say what levers would cost; nothing changes",
    request=LeversRequest,
    response=LeversView,
    idempotent=True,
)
POLICY = Endpoint(
    name="policy",
    method="GET",
    path="/v1/pools/{pool}/policy",
    role="read",
    summary="Get the policy of a pool, and its history",
    response=PolicyView,
)
COMPARE_POLICY = Endpoint(
    name="compare_policy",
    method="POST",
    path="/v1/pools/{pool}/policy/comparison",
    role="promote",
    summary="Compare another policy with the present one; nothing changes",
    request=PolicyRequest,
    response=PolicyComparison,
    compiles=True,
    idempotent=True,
    large=True,
)
PROMOTE_POLICY = Endpoint(
    name="promote_policy",
    method="PUT",
    path="/v1/pools/{pool}/policy",
    role="promote",
    summary="Give a pool another policy",
    request=PolicyRequest,
    response=PolicyChanged,
    compiles=True,
    keyed=True,
    large=True,
    names_key=True,
)
REVERT_POLICY = Endpoint(
    name="revert_policy",
    method="POST",
    path="/v1/pools/{pool}/policy/revert",
    role="promote",
    summary="Give a pool the policy that it had before",
    response=PolicyChanged,
    idempotent=True,
    keyed=True,
    names_key=True,
)
STATS = Endpoint(
    name="stats",
    method="GET",
    path="/v1/stats",
    role="read",
    summary="Get the state of the whole service",
    response=Stats,
)

ENDPOINTS: tuple[Endpoint[Any], ...] = (
    *(DECIDE, FEEDBACK, ARTICLES, ARTICLE, PUT_ARTICLE, REMOVE_ARTICLE, STATS),
    *(LEVERS, PUT_LEVERS, COST_LEVERS),
    *(POLICY, COMPARE_POLICY, PROMOTE_POLICY, REVERT_POLICY),
    Endpoint(
        name="metrics",
        method="GET",
        path="/metrics",
        role="read",
        summary="Get the metrics in Prometheus' text format",
        response=str,
    ),
    Endpoint(
        name="live",
        method="GET",
        path="/health/live",
        role=None,
        summary="Check that the process answers",
        response=Health,
    ),
    Endpoint(
        name="ready",
        method="GET",
        path="/health/ready",
        role=None,
        summary="Check that the service accepts requests",
        response=Health,
        statuses=((503, "not ready"),),
    ),
    Endpoint(
        name="openapi",
        method="GET",
        path="/openapi.json",
        role=None,
        summary="Get this document",
        response=dict[str, Any],
        described=False,
    ),
)
BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}


def endpoint_of(method: str, path: str) -> Endpoint[Any] | None:
    """The endpoint of a request, if there is one.

    >>> endpoint_of("PUT", "/v1/pools/front/policy").name
    'promote_policy'
    """
    for each in ENDPOINTS:
        if each.method == method and re.fullmatch(each.pattern, path):
            return each
    return None


def allowed_methods(path: str) -> tuple[str, ...]:
    """The methods that a path has.

    >>> allowed_methods("/v1/pools/front/articles/rain/or/shine")
    ('GET', 'HEAD', 'PUT', 'DELETE')
    """
    found = {each.method for each in ENDPOINTS if re.fullmatch(each.pattern, path)}
    named = [method for method in METHODS if method in found]
    return tuple(name for each in named for name in ((each, "HEAD") if each == "GET" else (each,)))
