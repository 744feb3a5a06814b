"""The studio: its pages, its sessions, and the data that its scripts ask for."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from topstory.kernels.buckets import DEPLOYMENT
from topstory.serving.api.endpoints import ROLES, Role
from topstory.serving.api.errors import ApiError
from topstory.serving.http.asgi import read_body
from topstory.serving.http.hot_routes import decoded
from topstory.serving.http.prometheus import Metrics
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.journal.clock import SECOND
from topstory.serving.pages.explanation import Explanation, explain
from topstory.serving.pages.lookup import decision_of, numbered
from topstory.serving.pages.names import Names
from topstory.serving.pages.rendering import data, page
from topstory.serving.pages.studio.articles import Sort, article_page
from topstory.serving.pages.studio.decisions import describe_decision, recent_decisions
from topstory.serving.pages.studio.gate import COOKIE
from topstory.serving.pages.studio.health import health
from topstory.serving.pages.studio.snapshot import StudioSnapshots
from topstory.serving.pages.studio.visitors import segments
from topstory.serving.pages.studio.what_if import WhatIf, WhatIfRequest, choices, present
from topstory.serving.security.api_keys import Key, Keys
from topstory.serving.security.sessions import Sessions
from topstory.serving.service.inputs import context_of
from topstory.serving.service.service import Service
from topstory.serving.upkeep.keeper import Keeper

SECTIONS = {
    "now": "Now",
    "articles": "Articles",
    "visitors": "Visitors",
    "policy": "Policy",
    "health": "Health",
    "decisions": "Decisions",
}
MAX_DIGITS = 19  # of a decision's number

Handler = Callable[[Request], Awaitable[Response]]


class VisitorQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Somebody of whom the studio asks what they would be shown."""

    user: tuple[float, ...] | dict[str, Any]


class Studio:
    """The handlers. Each checks its key first, as the API does."""

    def __init__(
        self,
        service: Service,
        keeper: Keeper,
        keys: Keys,
        sessions: Sessions,
        names: Names,
        snapshots: StudioSnapshots,
        metrics: Metrics,
        requests: RequestCounts,
        what_if: WhatIf,
    ) -> None:
        self._what_if = what_if
        self._service, self._keeper, self._keys, self._sessions = service, keeper, keys, sessions
        self._names, self._snapshots = names, snapshots
        self._metrics, self._requests = metrics, requests

    # -- pages --

    async def section(self, request: Request) -> Response:
        """A page of the studio, or the one to sign in."""
        section = request.path_params.get("section", "now")
        if section not in SECTIONS:
            raise ApiError(404, "unknown_path", "there is nothing at this path")
        try:
            key = self._keys.recognise(_authorization(request))
        except ApiError as error:
            expired = error.reason == "session_expired"
            query = request.url.query
            wanted = f"{request.url.path}?{query}" if query else request.url.path
            return page("sign_in.html.j2", 401, expired=expired, wanted=wanted)
        if "read" not in key.roles:
            return page("no_access.html.j2", 403, key=key.name)
        pool = self._pool(request)
        return page(
            "studio.html.j2",
            section=section,
            sections=SECTIONS,
            pool=pool,
            pools=list(self._service.deciders),
            key=key.name,
            roles=[role for role in ROLES if role in key.roles],
            facts=self._facts(key, pool),
        )

    def _facts(self, key: Key, pool: str) -> dict[str, Any]:
        """What every script needs to know."""
        found = self._service.decider(pool).pool
        features = next((len(each.facts.features or ()) for each in found.articles.values()), 0)
        return {
            "pool": pool,
            "can_edit": "edit" in key.roles,
            "can_promote": "promote" in key.roles,
            "segments": self._names.segments,
            "topics": [
                self._names.topics[n] if n < len(self._names.topics) else f"Feature {n + 1}"
                for n in range(max(0, features - 1))
            ],
            "personas": self._names.personas,
            "raw": self._names.raw,
            "context": self._service.config.context,
            "simulated": self._service.config.pages.simulated,
            "today": self._service.config.pages.today,
            "docs": self._service.config.pages.docs,
        }

    # -- sessions --

    async def sign_in(self, request: Request) -> Response:
        """Exchange a key, in the Authorization header, for a session."""
        key = self._keys.identify(_authorization(request))
        self._keys.spend(key, time.monotonic(), 1)
        answer = data({"name": key.name, "roles": sorted(key.roles)})
        answer.set_cookie(
            *(COOKIE, self._sessions.issue(key, time.time()), int(self._sessions.seconds)),
            path="/",
            secure=request.headers.get("x-forwarded-proto") == "https",
            httponly=True,
            samesite="strict",
        )
        return answer

    async def sign_out(self, request: Request) -> Response:
        """Forget the session in this browser."""
        answer = RedirectResponse("/studio", 303)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer

    # -- data --

    def reading(self, handle: Callable[[Request, str], Any], role: Role = "read") -> Handler:
        """A handler that needs a role, gets the pool, and returns what becomes JSON."""

        async def respond(request: Request) -> Response:
            self._keys.allow(_authorization(request), role, time.monotonic())
            self._service.commits.check_state()
            found = handle(request, self._pool(request))
            return data(await found if hasattr(found, "__await__") else found)

        return respond

    def now(self, request: Request, pool: str) -> Any:
        """The state of a pool."""
        return self._snapshots.of(pool)

    async def articles(self, request: Request, pool: str) -> Any:
        """A page of the articles."""
        asked = request.query_params
        sort = asked.get("sort", "shows")
        if sort not in get_args(Sort):
            raise ApiError(422, "bad_request", f"sort must be one of {', '.join(get_args(Sort))}")
        return await article_page(
            *(self._service, pool, asked.get("search", "")[:200], sort),  # type: ignore[arg-type]  # checked above
            descending=asked.get("order", "down") == "down",
            number=_whole(asked.get("page", "1"), "page"),
        )

    async def visitors(self, request: Request, pool: str) -> Any:
        """The segments."""
        return await segments(self._service, pool, self._names)

    async def explained(self, request: Request, pool: str) -> Explanation:
        """What somebody would be shown, and why."""
        body = await read_body(request.scope, request.receive, 100_000)
        asked = decoded(msgspec.json.Decoder(VisitorQuestion), body)
        service = self._service
        user = context_of(
            *(asked.user, service.features, service.config.context),
            service.config.limits.magnitude,
        )
        try:
            async with service.spare_time.piece():  # it takes as long as several decisions
                return explain(service, pool, user, self._names.segments)
        except KeyError:
            raise ApiError(409, "no_article", "no article can be shown now") from None

    def policy(self, request: Request, pool: str) -> Any:
        """The policy, its parameters, and what it has seen."""
        found = self._service.decider(pool).pool
        policy, at = found.policy, self._service.clock.now()
        inspected = self._metrics.inspector.last
        return {
            "model": policy.model.name,
            "explorer": policy.explorer.name,
            "parameters": {
                key: value
                for key, value in {
                    **policy.model.parameters(),
                    **policy.explorer.parameters(),
                    "seed": policy.seed,
                }.items()
                if isinstance(value, int | float | str | None)
            },
            "trials": int(sum(map(sum, found.tally.shows)))
            - int(sum(found.tally.shows[DEPLOYMENT])),
            "payoffs": float(sum(map(sum, found.tally.payoff))),
            "learned": (at - found.taught) / SECOND,
            "drift": None if inspected is None else inspected.drift.get(pool),
            "record": self._service.state.number,
        }

    def choices(self, request: Request, pool: str) -> Any:
        """What can be tried instead, and how far a trial is."""
        now = present(self._service.decider(pool).pool.policy)
        return {"choices": choices(), "now": now, **self._what_if.state}

    async def try_policies(self, request: Request, pool: str) -> Any:
        """Evaluate or replay other policies on the journal."""
        body = await read_body(request.scope, request.receive, 100_000)
        return self._what_if.start(pool, decoded(msgspec.json.Decoder(WhatIfRequest), body))

    async def cancel_trial(self, request: Request, pool: str) -> Any:
        """End it."""
        return await self._what_if.cancel()

    async def trained(self, request: Request, pool: str) -> Any:
        """A policy that was tried, for `PUT /v1/pools/{pool}/policy`."""
        place = _whole(request.query_params.get("place", ""), "place")
        return {"policy": await self._what_if.trained(place)}

    async def health(self, request: Request, pool: str) -> Any:
        """Requests, journal, disk."""
        return await health(self._service, self._keeper, self._metrics, self._requests)

    async def decision(self, request: Request, pool: str) -> Any:
        """Everything known of one decision, by its id or its number in the journal."""
        token = request.query_params.get("id", "").strip()
        if token.isdecimal() and len(token) < MAX_DIGITS:
            found = await numbered(self._service, int(token))
        elif 0 < len(token) <= 100:
            found = await decision_of(self._service, token)
        else:
            raise ApiError(422, "bad_request", "give the id of a decision, or its number")
        async with self._service.spare_time.piece():  # it is explained, too
            return describe_decision(self._service, found, self._names.segments)

    def recent(self, request: Request, pool: str) -> Any:
        """The last decisions of a pool that were paid for, and of all."""
        return recent_decisions(self._service, pool)

    def _pool(self, request: Request) -> str:
        name = request.query_params.get("pool") or next(iter(self._service.config.pools))
        self._service.decider(name)
        return name


def _authorization(request: Request) -> bytes | None:
    found = request.headers.get("authorization")
    return None if found is None else found.encode("latin-1")


def _whole(text: str, name: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise ApiError(422, "bad_request", f"{name} must be a whole number, got {text[:20]!r}")
    return int(text)
