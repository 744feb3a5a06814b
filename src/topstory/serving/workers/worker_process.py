"""A worker process, started by the learner.

Its arguments are its place among the workers and the descriptors that it inherits: its end of the
socket pair, the socket that it listens on, the mapped memory (three), and the shared limits.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from contextlib import suppress

import uvloop

from topstory.serving.api.errors import ApiError
from topstory.serving.config.feature_model import load_feature_model
from topstory.serving.config.schema import Config
from topstory.serving.http.app import App, with_cors
from topstory.serving.http.fast_path.exchange import FastRoutes
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.http.sockets import http_server
from topstory.serving.pages.studio.gate import Gate
from topstory.serving.security.api_keys import Keys
from topstory.serving.security.secret_files import keys_of, sessions_of, signer_of
from topstory.serving.service.frontend import FrontEnd
from topstory.serving.state.pool import FOREVER
from topstory.serving.state.warm_up import freeze_garbage_collector, warm_up_scoring
from topstory.serving.workers.counts import UnreportedCounts
from topstory.serving.workers.forwarding import Forwarding
from topstory.serving.workers.link import Link
from topstory.serving.workers.shared_memory.double_buffer import Reader
from topstory.serving.workers.shared_memory.limits import SharedLimits
from topstory.serving.workers.shared_memory.mapped_view import MappedView
from topstory.serving.workers.transport import SocketTransport
from topstory.serving.workers.wire import (
    Answered,
    Count,
    FromLearner,
    Ready,
    WarmUp,
    Welcome,
    from_learner,
)

log = logging.getLogger("topstory.serving")


class Worker:
    """One process that answers HTTP."""

    def __init__(self, place: int, descriptors: list[int]) -> None:
        self._place = place
        end, listening, head, one, two, self._limits = descriptors
        self._end, self._listening = socket.socket(fileno=end), socket.socket(fileno=listening)
        self._reader = Reader((head, one, two))
        self._transport: SocketTransport | None = None
        self._forwarding: Forwarding | None = None
        self._counts: UnreportedCounts | None = None
        self._ending = False

    async def run(self) -> None:
        """From the learner's first message to the last request."""
        self._welcome: asyncio.Future[Config] = asyncio.get_running_loop().create_future()
        self._link = link = Link(from_learner, self._received, self._lost)
        await link.connect(self._end)
        config = await self._welcome
        logging.basicConfig(
            level=config.log_level.upper(), format="%(levelname)s %(name)s %(message)s"
        )
        limits, requests = config.limits, RequestCounts()
        self._view = view = MappedView(config, self._reader)
        features = None if config.features is None else load_feature_model(config.features)
        self._transport = SocketTransport(view, link.send)
        front = FrontEnd(config, view, self._transport, signer_of(config), features)
        self._counts = UnreportedCounts(requests, view, features, front.take_outliers)
        configured, _ = keys_of(config)
        shared = SharedLimits(len(configured), config.workers, self._limits)
        keys = Keys(
            *(configured, limits.rate, limits.burst, (shared.tokens, shared.seen)),
            sessions=sessions_of(config).holder,
        )
        self._forwarding = forwarding = Forwarding(link.send, keys, limits)
        gate = Gate(forwarding, keys)
        app = App(front, keys, gate, requests, count_rest=False)
        fast_routes = FastRoutes(app.hot, requests, cors=bool(config.cors_origins))
        server = http_server(
            with_cors(app, config.cors_origins),
            config,
            fast_routes,
            count_connections=lambda here: shared.connected(self._place, here),
            lifespan=False,
        )
        gate.ending = lambda: server.should_exit
        self._warm_up()
        freeze_garbage_collector()
        # uvicorn ends well on SIGTERM, and then raises it again: what is left here must still run.
        signal.signal(signal.SIGTERM, lambda number, frame: setattr(server, "should_exit", True))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the learner ends it
        with suppress(KeyboardInterrupt):
            await server.serve(sockets=[self._listening])
        link.send(self._counts.taken())
        self._ending = True
        link.close()

    def _warm_up(self) -> None:
        """Load kernels before a visitor comes."""
        for decider in self._view.latest().deciders.values():
            for at in (0, FOREVER - 1):
                with suppress(ApiError):  # there may be no article yet, or none at that time
                    warm_up_scoring(decider, at)
                    break
        self._link.send(Ready())

    def _received(self, message: FromLearner) -> None:
        if isinstance(message, Welcome):
            self._welcome.set_result(message.config)
        elif isinstance(message, Answered):
            assert self._forwarding is not None
            self._forwarding.received(message)
        elif isinstance(message, WarmUp):
            self._warm_up()
        elif isinstance(message, Count):
            if self._counts is not None:
                self._link.send(self._counts.taken())
        else:
            assert self._transport is not None
            self._transport.received(message)

    def _lost(self) -> None:
        """The learner is gone: nothing can be acknowledged, and no request has an answer."""
        if not self._ending:
            os._exit(1)


def main() -> None:
    """Serve until the learner ends it."""
    place, *descriptors = map(int, sys.argv[1:])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Worker(place, descriptors).run())
