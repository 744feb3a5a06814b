"""The learner: folds what front ends handed in, publishes the model, and makes edits."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
import uvloop

from topstory.extras import MissingExtra
from topstory.serving.config.schema import Config
from topstory.serving.fleet import shared
from topstory.serving.fleet.board import CHANNEL, Board
from topstory.serving.fleet.calls import Desk
from topstory.serving.fleet.database_time import DatabaseTime
from topstory.serving.fleet.inbox import Inbox
from topstory.serving.fleet.learner.candidate import LearnerCandidate
from topstory.serving.fleet.learner.fold import Fold
from topstory.serving.fleet.learner.heartbeat import Heartbeat
from topstory.serving.http.admin_routes import AdminRoutes
from topstory.serving.http.app import App
from topstory.serving.http.prometheus import Metrics
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.http.sockets import PrintLine
from topstory.serving.journal.journal import TAKEN_OVER, DamagedJournal, JournalError
from topstory.serving.journal.postgres.journal import PostgresJournal
from topstory.serving.journal.records import Entry
from topstory.serving.pages.routes import Pages
from topstory.serving.security.api_keys import Keys
from topstory.serving.security.secret_files import keys_of, sessions_of, signer_of
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.data_folder import (
    NOTHING_ALLOWED,
    DataFolder,
    StartOptions,
    open_folder,
)
from topstory.serving.upkeep.keeper import Keeper
from topstory.serving.workers.shared_memory.publisher import Publisher
from topstory.serving.workers.start import edited_pools, for_others, pools_that_ran_out

log = logging.getLogger("topstory.serving")

MIN_PUBLISH_SECONDS = 0.05  # a version is a commit of the database, and is read by every front end
CALLS_SECONDS = 0.02  # between two looks at what only the learner can answer
REFUSED = 3  # the exit status of one that cannot begin
AGAIN_SECONDS = 0.5  # before it is a candidate again, after a term that could not begin
CHECK_SECONDS = 0.05  # between two looks at whether it still is the learner


def learn(
    config: Config, print_line: PrintLine, options: StartOptions, report: PrintLine | None = None
) -> None:
    """Wait until this machine may learn, learn until another one does, and wait again.

    `print_line` prints what the operator should know; `report`, when it begins to learn.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    while not stop.is_set():
        candidate = LearnerCandidate(config, stop)
        journal = candidate.wait()
        if journal is None:
            return
        report = report or print_line
        try:
            learn_for_a_term(config, candidate, journal, print_line, report, options, stop)
            options = NOTHING_ALLOWED  # they were for one start
        except JournalError as error:
            if isinstance(error, DamagedJournal):
                raise
            log.error("this machine does not learn now: %s", error)
            stop.wait(AGAIN_SECONDS)


def learn_for_a_term(
    config: Config,
    candidate: LearnerCandidate,
    journal: PostgresJournal,
    print_line: PrintLine,
    report: PrintLine,
    options: StartOptions,
    stop: threading.Event,
) -> None:
    """Learn with a journal that this process owns, until another one does, or to end."""
    url, lock_seconds = config.journal.url, config.journal.lock_seconds
    assert url is not None
    inboxes = [Inbox(url, lock_seconds) for _ in range(2)]
    time, replaced = DatabaseTime(), threading.Event()
    heartbeat = Heartbeat(url, lambda: journal.epoch, replaced.set)
    with heartbeat, ExitStack() as resources:
        resources.callback(journal.close)
        for each in inboxes:
            resources.callback(each.close)
        time.measure(inboxes[0].connection)
        Path(config.data).mkdir(mode=0o700, parents=True, exist_ok=True)
        shared.copy_files(inboxes[0], Path(config.data))
        config = shared.secrets_for(inboxes[0], config)
        folder = open_folder(
            config,
            options,
            own=lambda _: journal,
            known=candidate.state,
            wall=time.now,
            prepared=lambda: journal.run_as_owner(*shared.files(Path(config.data))),
        )
        resources.callback(folder.close)
        log.info("learning, epoch %d", journal.epoch)
        report(f"topstory learning, epoch {journal.epoch}, data folder {config.data}")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            term = Term(folder, journal, inboxes, time)
            runner.run(term.run(stop, replaced, heartbeat.turned, print_line))


class Term:
    """One machine's time as the learner."""

    def __init__(
        self, folder: DataFolder, journal: PostgresJournal, inboxes: list[Inbox], time: DatabaseTime
    ) -> None:
        self._folder, self._journal, self._time = folder, journal, time
        self._folding, self._calling = inboxes

    async def run(
        self,
        stop: threading.Event,
        replaced: threading.Event,
        turned: Callable[[], None],
        print_line: PrintLine,
    ) -> None:
        """Until it is replaced, or to end; `turned` is called as long as the event loop turns."""
        config, folder, journal = self._folder.config, self._folder, self._journal
        keys, _ = keys_of(config, print_line)
        resolved = for_others(config, keys, folder)
        service = Service(config, folder, signer_of(resolved))
        self._service, commits = service, service.commits
        board = Board(journal, commits.run, commits.halt)
        pause = max(config.publish_seconds, MIN_PUBLISH_SECONDS)
        self._publisher = Publisher(
            service.state, tuple(config.pools), service.clock, pause, board, anew=True
        )
        service.ledger.on_applied = self._applied
        keeper, requests = Keeper(service, folder.snapshots), RequestCounts()
        sessions = sessions_of(resolved)
        guard = Keys(keys, config.limits.rate, config.limits.burst, sessions=sessions.holder)
        metrics = Metrics(service, keeper, requests)
        admin = AdminRoutes(service, keeper, guard, metrics)
        pages = Pages(service, keeper, guard, sessions, metrics, requests)
        app = App(service.front, guard, admin.router(more=pages.routes()), requests)
        fold = Fold(config, service.ledger, service.sequencer.influence, self._folding)
        desk = Desk(app, self._calling, lambda: journal.epoch, f"NOTIFY {CHANNEL}")
        statements = shared.statements(resolved)
        async with pages.lifespan(keeper.lifespan()):
            await commits.run(lambda: journal.run_as_owner(*statements))
            self._publisher.start()
            tasks = [asyncio.create_task(fold.run()), asyncio.create_task(desk.run(CALLS_SECONDS))]
            await asyncio.to_thread(service.warm_up)
            while not stop.is_set() and commits.halted is None:
                await asyncio.sleep(CHECK_SECONDS)
                turned()
                if replaced.is_set():
                    commits.halt(TAKEN_OVER)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._publisher.stop()
            await desk.close()
        if commits.halted is not None:
            log.error("this machine no longer learns: %s", commits.halted)

    def _applied(self, batch: Sequence[Entry]) -> None:
        if pools_that_ran_out(self._service.state):
            self._publisher.list_anew()
        self._publisher.changed(*edited_pools(batch))


def main() -> None:
    """Learn in a process of its own, until the one that started it ends it."""
    given = sys.stdin.buffer.read()
    config, options = msgspec.msgpack.decode(given, type=tuple[Config, StartOptions])
    logging.basicConfig(level=config.log_level.upper(), format="%(levelname)s %(name)s %(message)s")
    # The first line that the front end prints says where it listens.
    try:
        learn(config, lambda line: print(line, flush=True), options, report=log.info)
    except (OSError, ValueError, MissingExtra) as error:  # those that say what to do
        print(f"topstory: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(REFUSED)
