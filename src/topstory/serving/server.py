"""`topstory serve`: one process that listens, decides and learns; or several."""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import suppress

from topstory.serving.config.open_files import allow
from topstory.serving.config.schema import Config
from topstory.serving.http.admin_routes import AdminRoutes
from topstory.serving.http.app import App, with_cors
from topstory.serving.http.fast_path.exchange import FastRoutes
from topstory.serving.http.prometheus import Metrics
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.http.sockets import PrintLine, announce, http_server, listen
from topstory.serving.journal.connect import wait_until_free
from topstory.serving.pages.routes import Pages
from topstory.serving.pages.studio.gate import Gate
from topstory.serving.security.api_keys import Keys
from topstory.serving.security.secret_files import keys_of, sessions_of, signer_of
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.data_folder import NOTHING_ALLOWED, StartOptions, open_folder
from topstory.serving.state.warm_up import freeze_garbage_collector
from topstory.serving.upkeep.keeper import Keeper


def serve(config: Config, print_line: PrintLine, options: StartOptions = NOTHING_ALLOWED) -> None:
    """Serve until a signal comes; `print_line` prints what the operator should know."""
    logging.basicConfig(level=config.log_level.upper(), format="%(levelname)s %(name)s %(message)s")
    # The journal's thread gets the interpreter back from the event loop sooner than after 5 ms.
    sys.setswitchinterval(0.0005)
    allow(config)
    if config.used_role != "alone":
        from topstory.serving.fleet.start import serve_in_fleet

        serve_in_fleet(config, print_line, options)
        return
    if options.standby:  # before anybody can connect: a standby answers nothing
        wait_until_free(config)
    if config.workers > 1:
        from topstory.serving.workers.start import serve_with_workers

        serve_with_workers(config, print_line, options)
        return
    (listening,) = listen(config)
    try:
        folder = open_folder(config, options)
    except BaseException:
        listening.close()
        raise
    config = folder.config
    try:
        keys, made = keys_of(config, print_line)
        service = Service(config, folder, signer_of(config))
        service.warm_up()
        freeze_garbage_collector()
        keeper = Keeper(service, folder.snapshots)
        limits, requests = config.limits, RequestCounts()
        sessions = sessions_of(config)
        guard = Keys(keys, limits.rate, limits.burst, sessions=sessions.holder)
        metrics = Metrics(service, keeper, requests)
        pages = Pages(service, keeper, guard, sessions, metrics, requests)
        router = AdminRoutes(service, keeper, guard, metrics).router(
            lambda _: pages.lifespan(keeper.lifespan()), pages.routes()
        )
        gate = Gate(router, guard)
        app = App(service.front, guard, gate, requests)
        fast_routes = FastRoutes(app.hot, requests, cors=bool(config.cors_origins))
        server = http_server(with_cors(app, config.cors_origins), config, fast_routes)
        gate.ending = lambda: server.should_exit
        announce(print_line, config, listening, made)
        # uvicorn ends well on SIGTERM, and then raises it again: what is left here must still run.
        signal.signal(signal.SIGTERM, lambda number, frame: setattr(server, "should_exit", True))
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
    finally:
        folder.close()
