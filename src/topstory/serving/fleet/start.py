"""`topstory serve --role`: one machine of a fleet."""

from __future__ import annotations

import logging
import subprocess
import threading
from time import monotonic

import msgspec

from topstory.serving.child_process import command
from topstory.serving.config.loading import BadConfig
from topstory.serving.config.schema import Config
from topstory.serving.fleet.front.process import serve_front
from topstory.serving.fleet.learner.process import REFUSED, learn
from topstory.serving.http.sockets import PrintLine
from topstory.serving.journal.postgres.connection import without_secrets
from topstory.serving.state.recovery.data_folder import NOTHING_ALLOWED, StartOptions

log = logging.getLogger("topstory.serving")

MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.1, 5.0  # before a learner that ended is started again
HEALTHY_SECONDS = 30.0  # one that lived this long was healthy
FAILED = 1  # the exit status of a command that failed
END_SECONDS = 20.0  # for the learner's last snapshot


def serve_in_fleet(config: Config, print_line: PrintLine, options: StartOptions) -> None:
    """Serve until a signal comes, in the configured role."""
    if config.journal.url is None:
        raise BadConfig("role: the machines of a fleet meet in PostgreSQL: set `journal.url`")
    if config.workers > 1:
        raise BadConfig(
            'workers: in a fleet, start one process for each core, with `role = "front"`'
        )
    without_secrets(config.journal.url)  # JournalError if it is no URL: nobody needs to wait
    if config.role is None:
        log.info('this machine is one of a fleet; `role = "alone"` would serve without others')
    elif options.standby:
        raise BadConfig("role: a fleet needs no --standby: every learner but one waits")
    if config.role == "front":
        serve_front(config, print_line)
    elif config.role == "learner":
        learn(config, print_line, options)
    else:
        learner = LearnerProcess(config, options)
        try:
            serve_front(config, print_line, learner.check)
        finally:
            learner.end()


class LearnerProcess:
    """A learner beside a front end, in a process of its own; it is started again if it ends."""

    def __init__(self, config: Config, options: StartOptions) -> None:
        """`options`: for its first start."""
        self._config, self._ending = config, threading.Event()
        self._refused = False
        self._process = self._start(options)
        self._thread = threading.Thread(target=self._keep, name="learner", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """End this process if the learner has said why it cannot begin, and nobody else learns.

        A front end that waits for its first model calls this: without it, that could be for ever.
        """
        if self._refused:
            raise SystemExit(FAILED)

    def _start(self, options: StartOptions = NOTHING_ALLOWED) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command("topstory.serving.fleet.learner.process"), stdin=subprocess.PIPE
        )
        assert process.stdin is not None
        process.stdin.write(msgspec.msgpack.encode((self._config, options)))
        process.stdin.close()
        return process

    def _keep(self) -> None:
        pause = MIN_PAUSE_SECONDS
        while True:
            began = monotonic()
            status = self._process.wait()
            if self._ending.is_set():
                return
            self._refused = status == REFUSED
            healthy = monotonic() - began > HEALTHY_SECONDS
            pause = MIN_PAUSE_SECONDS if healthy else min(2 * pause, MAX_PAUSE_SECONDS)
            log.error("the learner ended with status %d; starting it in %.1f s", status, pause)
            if self._ending.wait(pause):
                return
            self._process = self._start()

    def end(self) -> None:
        """End it, once it has saved its state."""
        self._ending.set()
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join()
