"""The routes of both pages, and what goes on beside them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from topstory.serving.api.errors import ApiError
from topstory.serving.http.asgi import read_body
from topstory.serving.http.hot_routes import decoded
from topstory.serving.http.prometheus import Metrics
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.pages.assets import asset, picture
from topstory.serving.pages.names import Names
from topstory.serving.pages.rendering import page
from topstory.serving.pages.studio.history import CountHistory
from topstory.serving.pages.studio.simulation import RATES, Simulation, TruthReport
from topstory.serving.pages.studio.snapshot import StudioSnapshots
from topstory.serving.pages.studio.studio import Studio
from topstory.serving.pages.studio.what_if import WhatIf
from topstory.serving.pages.today import Today
from topstory.serving.security.api_keys import Keys
from topstory.serving.security.sessions import Sessions
from topstory.serving.service.service import Service
from topstory.serving.upkeep.keeper import Keeper

HISTORY_FILE = "studio-history.json"
KEEP_SECONDS = 60.0

log = logging.getLogger("topstory.serving")


class Pages:
    """What the configuration has switched on."""

    def __init__(
        self,
        service: Service,
        keeper: Keeper,
        keys: Keys,
        sessions: Sessions,
        metrics: Metrics,
        requests: RequestCounts,
    ) -> None:
        self._config, self._keys = service.config.pages, keys
        self._file = Path(service.config.data) / HISTORY_FILE
        self._history = CountHistory.read(self._file)
        self._simulation = Simulation() if self._config.simulated else None
        names = Names(service.config, service.features)
        self._snapshots = StudioSnapshots(service, keeper, self._history, self._simulation)
        self._what_if = WhatIf(service.config)
        self._today = Today(service, names)
        self._studio = Studio(
            *(service, keeper, keys, sessions, names, self._snapshots, metrics, requests),
            self._what_if,
        )

    def routes(self) -> list[Route]:
        """The routes."""
        found: list[Route] = []
        today, studio = self._today, self._studio
        if self._config.today or self._config.studio:
            found += [
                Route("/pages/{version}/{name:path}", asset, methods=["GET"]),
                Route("/pictures/{name}.svg", picture, methods=["GET"]),
            ]
        if self._config.today:
            found += [
                Route("/", today.front, methods=["GET"]),
                Route("/today/click", today.click, methods=["POST"]),
                Route("/today/why", today.why, methods=["GET"]),
            ]
        elif self._config.studio:
            found.append(Route("/", _to_studio, methods=["GET"]))
        if self._config.studio:
            reading = studio.reading
            found += [
                Route("/studio", studio.section, methods=["GET"]),
                Route("/studio/session", studio.sign_in, methods=["POST"]),
                Route("/studio/sign-out", studio.sign_out, methods=["POST"]),
                Route("/studio/data/now", reading(studio.now), methods=["GET"]),
                Route("/studio/data/articles", reading(studio.articles), methods=["GET"]),
                Route("/studio/data/visitors", reading(studio.visitors), methods=["GET"]),
                Route("/studio/data/explain", reading(studio.explained), methods=["POST"]),
                Route("/studio/data/policy", reading(studio.policy), methods=["GET"]),
                Route("/studio/data/what-if", reading(studio.choices), methods=["GET"]),
                Route(
                    *("/studio/data/what-if", reading(studio.try_policies, "promote")),
                    methods=["POST"],
                ),
                Route(
                    *("/studio/data/what-if/cancel", reading(studio.cancel_trial, "promote")),
                    methods=["POST"],
                ),
                Route(
                    *("/studio/data/what-if/policy", reading(studio.trained, "promote")),
                    methods=["GET"],
                ),
                Route("/studio/data/health", reading(studio.health), methods=["GET"]),
                Route("/studio/data/decision", reading(studio.decision), methods=["GET"]),
                Route("/studio/data/recent", reading(studio.recent), methods=["GET"]),
                Route("/studio/{section}", studio.section, methods=["GET"]),
            ]
        if self._simulation is not None:
            found += [
                Route("/demo", self._demo, methods=["GET"]),
                Route("/demo/rate", reading(self._rate), methods=["GET"]),
                Route("/demo/rate", studio.reading(self._set_rate, "edit"), methods=["POST"]),
                Route("/demo/truth", studio.reading(self._truth, "edit"), methods=["POST"]),
            ]
        return found

    @asynccontextmanager
    async def lifespan(self, inner: AbstractAsyncContextManager[None]) -> AsyncIterator[None]:
        """Sample the counts while the service runs, and keep them for the next start."""
        async with inner:
            task = asyncio.create_task(self._run())
            try:
                yield
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                await self._what_if.close()
                self._keep()

    async def _run(self) -> None:
        kept = time.monotonic()
        while True:
            self._snapshots.sample()
            await asyncio.sleep(1 - time.time() % 1)
            if time.monotonic() - kept > KEEP_SECONDS:
                kept = time.monotonic()
                await asyncio.to_thread(self._keep)

    def _keep(self) -> None:
        try:
            self._history.write(self._file)
        except OSError as error:  # only the charts of the past would be missing
            log.warning("could not write %s: %s", self._file, error)

    # -- the live demo --

    async def _demo(self, request: Request) -> Response:
        assert self._simulation is not None
        return page("demo.html.j2", rates=RATES, rate=self._simulation.rate)

    def _rate(self, request: Request, pool: str) -> dict[str, int]:
        assert self._simulation is not None
        return {"rate": self._simulation.rate}

    def _set_rate(self, request: Request, pool: str) -> dict[str, int]:
        assert self._simulation is not None
        asked = request.query_params.get("rate", "")
        if not asked.isdecimal() or int(asked) > RATES[-1]:
            raise ApiError(422, "bad_request", f"rate must be a number from 0 to {RATES[-1]}")
        self._simulation.rate = int(asked)
        return {"rate": self._simulation.rate}

    async def _truth(self, request: Request, pool: str) -> dict[str, int]:
        assert self._simulation is not None
        body = await read_body(request.scope, request.receive, 10_000)
        self._simulation.report(time.time(), decoded(msgspec.json.Decoder(TruthReport), body))
        return {"rate": self._simulation.rate}


async def _to_studio(request: Request) -> Response:
    return RedirectResponse("/studio", 303)
