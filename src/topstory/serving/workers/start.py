"""`topstory serve --workers N`: this process learns and keeps, and starts those that answer."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Sequence

import msgspec
import uvloop

from topstory.serving.config.schema import Config
from topstory.serving.http.admin_routes import AdminRoutes
from topstory.serving.http.app import App
from topstory.serving.http.prometheus import Metrics
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.http.sockets import Tell, announce, listen
from topstory.serving.journal.records import Entry, Placed, Removed
from topstory.serving.security.api_keys import Keys
from topstory.serving.security.secret_files import keys_of, secrets_of, signer_of
from topstory.serving.service.service import Service
from topstory.serving.state.recovery import Opening, open_folder
from topstory.serving.state.warm_up import settle_down, warm_up
from topstory.serving.upkeep.keeper import Keeper
from topstory.serving.workers.learner import Learner
from topstory.serving.workers.shared_memory.double_buffer import Writer
from topstory.serving.workers.shared_memory.limits import Board
from topstory.serving.workers.shared_memory.publisher import Publisher
from topstory.serving.workers.supervisor import Group

_EDITS = (Placed, Removed)  # written out in the loop, a union would be made for every record


def serve_with_workers(config: Config, tell: Tell) -> None:
    """Serve until told to stop; `tell` says what a person should know."""
    listening = listen(config, config.workers)
    opening = open_folder(config)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(config, opening, listening, tell))
    finally:
        opening.journal.close()
        opening.lock.close()


async def _serve(
    config: Config, opening: Opening, listening: list[socket.socket], tell: Tell
) -> None:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    keys, made = keys_of(config, tell)
    # All workers have the same ones, whatever the files say when one is started again.
    known = msgspec.structs.replace(
        config, keys=keys, signing=secrets_of(config), features=opening.kept_features
    )
    limits, requests, writer = config.limits, RequestCounts(), Writer()
    board = Board(len(keys), config.workers)
    for place in range(len(keys)):
        board.tokens[place] = limits.burst
    group = Group(known, listening, writer, board)
    try:
        service = Service(config, opening, signer_of(known))
        for decider in service.deciders.values():
            warm_up(decider.pool, decider.traffic)
        settle_down()
        publisher = Publisher(
            service.state, tuple(config.pools), service.clock, config.publish_seconds, writer
        )
        service.followed = lambda batch: publisher.changed(*_edited(batch))
        keeper = Keeper(service, opening.snapshots)
        guard = Keys(keys, limits.rate, limits.burst, (board.tokens, board.seen))
        metrics = Metrics(service, keeper, requests, group.gather)
        metrics.add(group)
        app = App(service, guard, AdminRoutes(service, keeper, guard, metrics).router(), requests)
        async with keeper.lifespan():
            publisher.start()
            await group.begin(
                lambda say: Learner(service, publisher, app, group.look, say), requests, publisher
            )
            announce(tell, config, listening[0], made)
            await told.wait()
            await group.end()
            publisher.stop()
    finally:
        group.kill()


def _edited(batch: Sequence[Entry]) -> set[str]:
    """The pools that an editor changed."""
    return {entry.record.pool for entry in batch if isinstance(entry.record, _EDITS)}
