"""`topstory serve --workers N`: this process learns, and starts workers that answer requests."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Sequence

import msgspec
import uvloop

from topstory.serving.config.schema import Config, KeyConfig
from topstory.serving.http.admin_routes import AdminRoutes
from topstory.serving.http.app import App
from topstory.serving.http.prometheus import Metrics
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.http.sockets import PrintLine, announce, listen
from topstory.serving.journal.records import Entry, Placed, Promoted, Removed
from topstory.serving.pages.routes import Pages
from topstory.serving.security.api_keys import Keys
from topstory.serving.security.secret_files import keys_of, secrets_of, sessions_of, signer_of
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.data_folder import DataFolder, StartOptions, open_folder
from topstory.serving.state.state import State
from topstory.serving.state.warm_up import freeze_garbage_collector
from topstory.serving.upkeep.keeper import Keeper
from topstory.serving.workers.learner import Learner
from topstory.serving.workers.shared_memory.double_buffer import Writer
from topstory.serving.workers.shared_memory.limits import SharedLimits
from topstory.serving.workers.shared_memory.publisher import Publisher
from topstory.serving.workers.supervisor import Supervisor

# Written out in the loop, a union would be built for every record.
_EDITS = (Placed, Removed, Promoted)


def serve_with_workers(config: Config, print_line: PrintLine, options: StartOptions) -> None:
    """Serve until a signal comes; `print_line` prints what the operator should know."""
    listening = listen(config, config.workers)
    folder = open_folder(config, options)
    config = folder.config
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(config, folder, listening, print_line))
    finally:
        folder.close()


async def _serve(
    config: Config, folder: DataFolder, listening: list[socket.socket], print_line: PrintLine
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    keys, made = keys_of(config, print_line)
    resolved = for_others(config, keys, folder)
    limits, requests, writer = config.limits, RequestCounts(), Writer()
    shared = SharedLimits(len(keys), config.workers)
    for place in range(len(keys)):
        shared.tokens[place] = limits.burst
    supervisor = Supervisor(resolved, listening, writer, shared)
    try:
        service = Service(config, folder, signer_of(resolved))
        service.warm_up()
        freeze_garbage_collector()
        publisher = Publisher(
            service.state, tuple(config.pools), service.clock, config.publish_seconds, writer
        )
        service.ledger.on_applied = lambda batch: publisher.changed(
            *edited_pools(batch), *pools_that_ran_out(service.state)
        )
        keeper = Keeper(service, folder.snapshots)
        sessions = sessions_of(resolved)
        guard = Keys(
            *(keys, limits.rate, limits.burst, (shared.tokens, shared.seen)),
            sessions=sessions.holder,
        )
        metrics = Metrics(service, keeper, requests, supervisor.gather)
        metrics.add(supervisor)
        admin = AdminRoutes(service, keeper, guard, metrics)
        pages = Pages(service, keeper, guard, sessions, metrics, requests)
        app = App(service.front, guard, admin.router(more=pages.routes()), requests)
        async with pages.lifespan(keeper.lifespan()):
            publisher.start()
            await supervisor.begin(
                lambda send: Learner(service.sequencer, publisher, app, supervisor.warm_up, send),
                requests,
                publisher,
            )
            announce(print_line, config, listening[0], made)
            await stop.wait()
            await supervisor.end()
            publisher.stop()
    finally:
        supervisor.kill()


def for_others(config: Config, keys: tuple[KeyConfig, ...], folder: DataFolder) -> Config:
    """The configuration for other processes.

    All have the same secrets, whatever the files say when one is restarted.
    """
    return msgspec.structs.replace(
        config,
        keys=keys,
        signing=secrets_of(config),
        features=folder.kept_features,
        journal=msgspec.structs.replace(config.journal, url=None),  # it may hold a password
    )


def pools_that_ran_out(state: State) -> list[str]:
    """The pools of which an article was shown as often as it may be, each named once."""
    found = [name for name, pool in state.pools.items() if pool.ran_out]
    for name in found:
        state.pools[name].ran_out = False
    return found


def edited_pools(batch: Sequence[Entry]) -> set[str]:
    """The pools that an editor changed."""
    return {entry.record.pool for entry in batch if isinstance(entry.record, _EDITS)}
