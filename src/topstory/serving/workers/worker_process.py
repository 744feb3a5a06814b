"""A worker process: `python -m topstory.serving.workers.worker_process`, started by the learner.

Its arguments are its place among the workers and the descriptors that it inherits: its end of the
pair of sockets, the socket it listens on, the mapped memory (three), and the board of limits.
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

from topstory.serving.api.errors import Refused
from topstory.serving.config.feature_model import load_feature_model
from topstory.serving.config.schema import Config
from topstory.serving.http.app import App, with_cors
from topstory.serving.http.fast_path.exchange import FastRoutes
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.http.sockets import http_server
from topstory.serving.security.api_keys import Keys
from topstory.serving.security.secret_files import keys_of, signer_of
from topstory.serving.state.decider import Decider
from topstory.serving.state.pool import FOREVER
from topstory.serving.state.warm_up import settle_down
from topstory.serving.workers.counts import Counts
from topstory.serving.workers.forwarding import Forwarding
from topstory.serving.workers.frontend import Front
from topstory.serving.workers.link import Link
from topstory.serving.workers.shared_memory.double_buffer import Reader
from topstory.serving.workers.shared_memory.limits import Board
from topstory.serving.workers.shared_memory.mirror import Mirror
from topstory.serving.workers.wire import (
    Answered,
    Count,
    FromLearner,
    Look,
    Ready,
    Welcome,
    from_learner,
)

log = logging.getLogger("topstory.serving")


class Worker:
    """One process that answers HTTP."""

    def __init__(self, place: int, descriptors: list[int]) -> None:
        self._place = place
        end, listening, head, one, two, self._board = descriptors
        self._end, self._listening = socket.socket(fileno=end), socket.socket(fileno=listening)
        self._reader = Reader((head, one, two))
        self._front: Front | None = None
        self._forwarding: Forwarding | None = None
        self._counts: Counts | None = None
        self._ending = False

    async def run(self) -> None:
        """From the learner's welcome to the last request."""
        self._welcome: asyncio.Future[Config] = asyncio.get_running_loop().create_future()
        self._link = link = Link(from_learner, self._heard, self._lost)
        await link.connect(self._end)
        config = await self._welcome
        logging.basicConfig(
            level=config.log_level.upper(), format="%(levelname)s %(name)s %(message)s"
        )
        limits, requests = config.limits, RequestCounts()
        mirror = Mirror(config, self._reader)
        features = None if config.features is None else load_feature_model(config.features)
        self._front = front = Front(config, mirror, signer_of(config), features, link.say)
        self._counts = Counts(requests, mirror, features)
        told, _ = keys_of(config)
        board = Board(len(told), config.workers, self._board)
        keys = Keys(told, limits.rate, limits.burst, (board.tokens, board.seen))
        self._forwarding = forwarding = Forwarding(link.say, keys, limits.body_bytes)
        app = App(front, keys, forwarding, requests, count_rest=False)
        fast_routes = FastRoutes(app.hot, requests, cors=bool(config.cors_origins))
        server = http_server(
            with_cors(app, config.cors_origins),
            config,
            fast_routes,
            count_connections=lambda here: board.connected(self._place, here),
            lifespan=False,
        )
        self._mirror = mirror
        self._look()
        settle_down()
        # uvicorn ends well on SIGTERM, and then raises it again: what is left here must still run.
        signal.signal(signal.SIGTERM, lambda number, frame: setattr(server, "should_exit", True))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the learner says when
        with suppress(KeyboardInterrupt):
            await server.serve(sockets=[self._listening])
        link.say(self._counts.taken())
        self._ending = True
        link.close()

    def _look(self) -> None:
        """Kernels are loaded before a visitor comes."""
        for decider in self._mirror.look().deciders.values():
            _warm_up(decider)
        self._link.say(Ready())

    def _heard(self, message: FromLearner) -> None:
        if isinstance(message, Welcome):
            self._welcome.set_result(message.config)
        elif isinstance(message, Answered):
            assert self._forwarding is not None
            self._forwarding.heard(message)
        elif isinstance(message, Look):
            self._look()
        elif isinstance(message, Count):
            if self._counts is not None:
                self._link.say(self._counts.taken())
        else:
            assert self._front is not None
            self._front.heard(message)

    def _lost(self) -> None:
        """Without a learner nothing can be promised, and what was asked has no answer."""
        if not self._ending:
            os._exit(1)


def _warm_up(decider: Decider) -> None:
    """All that kernels are called for here, once."""
    user = (*[0.0] * (decider.pool.dimension - 1), 1.0)
    for at in (0, FOREVER - 1):
        with suppress(Refused):  # there may be no article yet
            decider.decide_all([user], [0], 0, at)
            decider.decide(user, 0, 0, at, slots=2)
            return


def main() -> None:
    """Serve until told to stop."""
    place, *descriptors = map(int, sys.argv[1:])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Worker(place, descriptors).run())


if __name__ == "__main__":
    main()
