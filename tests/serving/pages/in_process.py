"""The whole application in this process, as `serve` builds it, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.serving.making import Made, config

from topstory.serving.api.endpoints import ROLES
from topstory.serving.config.schema import Config
from topstory.serving.http.admin_routes import AdminRoutes
from topstory.serving.http.app import App
from topstory.serving.http.prometheus import Metrics
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.pages.routes import Pages
from topstory.serving.pages.studio.gate import Gate
from topstory.serving.security.api_keys import Keys, new_key
from topstory.serving.security.secret_files import sessions_of
from topstory.serving.upkeep.keeper import Keeper

MARK = {"X-Topstory-Studio": "1"}
SITE = "http://news.example"


class Site:
    """A service with its pages; a key for everything (`all`), and one for each role."""

    def __init__(self, settings: Config, keys: dict[str, str]) -> None:
        self.keys = keys
        self.made = Made(settings)
        self.service = self.made.service
        settings = self.service.config
        self.keeper, requests = Keeper(self.service, self.made.folder.snapshots), RequestCounts()
        sessions = sessions_of(settings)
        limits = settings.limits
        guard = Keys(settings.keys, limits.rate, limits.burst, sessions=sessions.holder)
        metrics = Metrics(self.service, self.keeper, requests)
        self.pages = Pages(self.service, self.keeper, guard, sessions, metrics, requests)
        router = AdminRoutes(self.service, self.keeper, guard, metrics).router(
            None, self.pages.routes()
        )
        self.gate = Gate(router, guard)
        self.app = App(self.service.front, guard, self.gate, requests)
        self.runner = asyncio.Runner()
        self._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url=SITE, cookies=None
        )

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """From the start of the service to its end."""
        return self.pages.lifespan(self.keeper.lifespan())

    def ask(
        self, method: str, path: str, key: str = "", session: str = "", **options: Any
    ) -> httpx.Response:
        """One request, by a key's name or by a session's cookie, and nothing remembered of it."""
        headers = dict(options.pop("headers", {}))
        if key:
            headers["Authorization"] = f"Bearer {self.keys[key]}"
        if session:
            headers["Cookie"] = session
        self._http.cookies.clear()
        return self.runner.run(self._http.request(method, path, headers=headers, **options))

    def get(self, path: str, key: str = "", session: str = "", **options: Any) -> httpx.Response:
        return self.ask("GET", path, key, session, **options)

    def post(self, path: str, key: str = "", session: str = "", **options: Any) -> httpx.Response:
        return self.ask("POST", path, key, session, **options)

    def sign_in(self, key: str) -> str:
        """The cookie of a session."""
        answer = self.post("/studio/session", key)
        assert answer.status_code == 200, answer.text
        return answer.headers["set-cookie"].partition(";")[0]

    def visit(self, count: int, clicks: int) -> list[dict[str, Any]]:
        """Visitors of the second group, of whom the first ones click."""
        dimension = self.service.config.context
        user = [float(place in (1, dimension - 1)) for place in range(dimension)]
        made = self.post("/v1/decide", "decide", json=[{"user": user}] * count).json()
        assert all("decision" in each for each in made)
        paid = [{"decision": each["decision"], "payoff": 1.0} for each in made[:clicks]]
        assert self.post("/v1/feedback", "feedback", json=paid).status_code == 200
        return list(made)

    def close(self) -> None:
        self.runner.run(self._http.aclose())
        self.runner.run(self.service.commits.drain())
        self.made.crash()
        self.runner.close()


@contextmanager
def site(folder: Path, **overrides: Any) -> Iterator[Site]:
    """One that is closed in the end."""
    keys, held = {}, []
    for name in ("all", *ROLES):
        keys[name], digest = new_key()
        roles = list(ROLES) if name == "all" else [name]
        held.append({"name": name, "sha256": digest, "roles": roles})
    patient = {"queue_seconds": 60.0}  # a busy machine refuses nobody
    found = Site(config(folder, keys=held, limits=patient, **overrides), keys)
    try:
        yield found
    finally:
        found.close()
