"""A front end: scores from the published model, and hands in what it decides and is paid."""

from __future__ import annotations

import asyncio
import logging
import signal
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import sleep
from typing import TypeVar

import uvloop

from topstory.serving.config.feature_model import FILE as FEATURES
from topstory.serving.config.feature_model import FeatureModel, load_feature_model
from topstory.serving.config.schema import Config
from topstory.serving.fleet import shared
from topstory.serving.fleet.calls import Caller
from topstory.serving.fleet.database_time import DatabaseTime
from topstory.serving.fleet.front.listener import Listener
from topstory.serving.fleet.front.published import PublishedView
from topstory.serving.fleet.front.routes import FrontRoutes
from topstory.serving.fleet.front.transport import DatabaseTransport
from topstory.serving.fleet.inbox import Inbox
from topstory.serving.http.app import App, with_cors
from topstory.serving.http.fast_path.exchange import FastRoutes
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.http.sockets import PrintLine, announce, http_server, listen
from topstory.serving.journal.journal import JournalError
from topstory.serving.pages.studio.gate import Gate
from topstory.serving.security.api_keys import Keys
from topstory.serving.security.secret_files import sessions_of, signer_of
from topstory.serving.service.event_contexts import EventContexts
from topstory.serving.service.frontend import FrontEnd
from topstory.serving.state.warm_up import freeze_garbage_collector
from topstory.serving.workers.forwarding import Forwarding

log = logging.getLogger("topstory.serving")
T = TypeVar("T")

LOOK_SECONDS = 0.2  # between two looks for what the learner publishes first
LISTEN_SECONDS = 2.0  # a look at the model may take this long


class Front:
    """One process that answers HTTP."""

    def __init__(self, config: Config, waits: Callable[[], None] = lambda: None) -> None:
        """Wait until a learner has published, which may be long: `waits` is called meanwhile."""
        url, lock_seconds = config.journal.url, config.journal.lock_seconds
        assert url is not None
        self._writing, self._calling = (Inbox(url, lock_seconds) for _ in range(2))
        self._listening = Inbox(url, lock_seconds, LISTEN_SECONDS)
        self.config, self._features = _fleet_config(self._writing, config, waits)
        time = DatabaseTime()
        self.view = PublishedView(self.config, time)
        self._node = self._writing.new_node()
        self._caller = Caller(self._calling, self._node)
        self._listener = Listener(
            self._listening, self.view, time, self._node, self._caller.deliver
        )
        while (first := _patiently(self._listener.first)) is None:
            waits()
            sleep(LOOK_SECONDS)
        self.view.install(first)
        events = EventContexts.of(self._features)
        self.transport = transport = DatabaseTransport(
            *(self.config, self.view, self._writing, self._node),
            0 if events is None else events.count,
        )
        self.front_end = FrontEnd(
            self.config, self.view, transport, signer_of(self.config), self._features
        )
        self.view.changed = transport.view_changed

    async def serve(self, print_line: PrintLine) -> None:
        """Answer requests until a signal comes."""
        config, requests, view = self.config, RequestCounts(), self.view
        (listening,) = listen(config)
        keys = Keys(
            config.keys,
            config.limits.rate,
            config.limits.burst,
            sessions=sessions_of(config).holder,
        )
        forwarding = Forwarding(self._caller.send, keys, config.limits)
        self._caller.received = forwarding.received
        gate = Gate(forwarding, keys)
        routes = FrontRoutes(gate, self.transport, view, keys, requests)
        app = App(self.front_end, keys, routes, requests)
        fast_routes = FastRoutes(app.hot, requests, cors=bool(config.cors_origins))
        server = http_server(
            with_cors(app, config.cors_origins), config, fast_routes, lifespan=False
        )
        gate.ending = lambda: server.should_exit
        freeze_garbage_collector()
        announce(print_line, config, listening, new_key=True)
        # uvicorn ends well on SIGTERM, and then raises it again: what is left here must still run.
        signal.signal(signal.SIGTERM, lambda number, frame: setattr(server, "should_exit", True))
        async with self.background():
            with suppress(KeyboardInterrupt):
                await server.serve(sockets=[listening])

    @asynccontextmanager
    async def background(self) -> AsyncIterator[None]:
        """Follow the learner, and watch the database; at the end hand in what waits."""
        transport = self.transport
        self._listener.start(asyncio.get_running_loop())
        await transport.prepare()
        watching = asyncio.create_task(transport.watch())
        try:
            yield
        finally:
            watching.cancel()
            await transport.drain()
            await asyncio.to_thread(self._listener.close)
            transport.close()
            self._caller.close()

    def close(self) -> None:
        """Close the connections."""
        for inbox in (self._writing, self._listening, self._calling):
            inbox.close()


def serve_front(
    config: Config, print_line: PrintLine, waits: Callable[[], None] = lambda: None
) -> None:
    """Serve until a signal comes; `waits` is called while there is no model."""
    front = Front(config, waits)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(front.serve(print_line))
    finally:
        front.close()


def _fleet_config(
    inbox: Inbox, own: Config, waits: Callable[[], None]
) -> tuple[Config, FeatureModel | None]:
    """The fleet's configuration and feature model, once a learner has written them."""
    told = False
    while True:
        found = None
        if _patiently(lambda: shared.is_prepared(inbox)):
            found = _patiently(lambda: shared.config_of(inbox, own))
        if found is not None:
            return found, _features(inbox, found)
        if not told:
            log.warning("waiting for a learner to publish its configuration and a model")
        told = True
        waits()
        sleep(LOOK_SECONDS)


def _features(inbox: Inbox, config: Config) -> FeatureModel | None:
    if config.features is None:
        return None
    body = _patiently(lambda: shared.read(inbox, f"file/{FEATURES}"))
    assert body is not None  # the learner writes them together
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FEATURES
        path.write_bytes(body)
        return load_feature_model(str(path))


def _patiently(work: Callable[[], T]) -> T:
    """Try until the database answers."""
    while True:
        try:
            return work()
        except JournalError as error:
            log.warning("waiting for the database: %s", error)
            sleep(LOOK_SECONDS)
