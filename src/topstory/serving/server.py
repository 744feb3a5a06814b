"""`topstory serve`: one process that listens, decides, learns and keeps."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import uvicorn

from topstory.serving.app import App, with_cors
from topstory.serving.config import Config
from topstory.serving.express import Express
from topstory.serving.keeping import Keeper
from topstory.serving.keys import Keys
from topstory.serving.opening import open_folder
from topstory.serving.protocol import guarded
from topstory.serving.secrets_file import keys_of, signer_of
from topstory.serving.service import Service
from topstory.serving.warming import warm_up

log = logging.getLogger("topstory.serving")

BACKLOG = 2048  # connections that wait to be taken

Tell = Callable[[str], None]


def serve(config: Config, tell: Tell) -> None:
    """Serve until told to stop; `tell` says what a person should know."""
    logging.basicConfig(level=config.log_level.upper(), format="%(levelname)s %(name)s %(message)s")
    # The journal's thread gets the interpreter back from the event loop sooner than after 5 ms.
    sys.setswitchinterval(0.0005)
    listening = _listen(config)
    opening = open_folder(config)
    try:
        keys, made = keys_of(config)
        service = Service(config, opening, signer_of(config))
        for decider in service.deciders.values():
            warm_up(decider.pool, decider.traffic)
        # What is there by now stays: to look through it for garbage would hold up every visitor.
        gc.collect()
        gc.freeze()
        keeper = Keeper(service, opening.snapshots)
        limits = config.limits
        guard = Keys(keys, limits.rate, limits.burst)
        app = App(service, keeper, guard, lambda _: _life(service, keeper))
        # Pages of other sites need headers that only the ordinary way adds.
        express = None if config.cors_origins else Express(app.hot, app.requests)
        server = uvicorn.Server(
            uvicorn.Config(
                with_cors(app, config.cors_origins),
                http=guarded(limits, express),
                loop="uvloop",
                ws="none",
                lifespan="on",
                log_config=None,
                log_level=config.log_level,
                access_log=False,  # it would cost half of a request
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=limits.idle_seconds,
                timeout_graceful_shutdown=limits.shutdown_seconds,
                backlog=BACKLOG,
            )
        )
        host, port = listening.getsockname()[:2]
        tell(f"topstory serves on http://{host}:{port}, data in {config.data}")
        if made is not None:
            tell(f"A key with all roles, told this once: {made}")
        elif not config.keys:
            tell("The key that the first start told is good; `topstory new-key` makes others")
        # uvicorn ends well on SIGTERM, and then raises it again: what is left here must still run.
        signal.signal(signal.SIGTERM, lambda number, frame: setattr(server, "should_exit", True))
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
    finally:
        opening.journal.close()
        opening.lock.close()


@asynccontextmanager
async def _life(service: Service, keeper: Keeper) -> AsyncIterator[None]:
    """What goes on from the first request to the last."""
    keeping = asyncio.create_task(keeper.run())
    try:
        yield
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        await service.commits.drain()
        try:
            await keeper.snapshot()
        except OSError as error:  # the journal has everything: the next start only takes longer
            log.error("no snapshot was written at the end: %s", error)
        service.commits.close()
        log.info("stopped at record %d", service.state.number)


def _listen(config: Config) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((config.host, config.port))
        listening.listen(BACKLOG)  # who comes early waits
    except OSError as error:
        listening.close()
        raise OSError(error.errno, f"{error.strerror}", f"{config.host}:{config.port}") from None
    return listening
