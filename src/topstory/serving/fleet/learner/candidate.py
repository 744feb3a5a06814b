"""Who learns: candidates follow the journal, and one takes over when the learner is gone.

A candidate has the state nearly up to date and the kernels loaded, so that it only has to read the
end of the journal. The database alone says who is the learner: by the lock, by the lease, whose
times are its own clock's, and by the epoch, which every write of a learner checks.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from time import monotonic

import psycopg

from topstory.serving.config.schema import Config
from topstory.serving.fleet import shared
from topstory.serving.fleet.inbox import Inbox
from topstory.serving.journal.connect import journal_of
from topstory.serving.journal.journal import Journal, JournalError, JournalOwned
from topstory.serving.journal.postgres.journal import PostgresJournal
from topstory.serving.journal.postgres.lock import OWNER_LOCK
from topstory.serving.state.exclusion import NotExcluded
from topstory.serving.state.recovery.recovery import Starts, recover
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.state.state import State

log = logging.getLogger("topstory.serving")

LEASE_SECONDS = 2.0  # a learner renews it with every write, and once a second at least
LOOK_SECONDS = 0.2  # between two looks at who learns
SLOW_SECONDS = 0.5  # a look that takes longer says more about the database than about the learner
_VACANT = f"""
SELECT renewed + make_interval(secs => {LEASE_SECONDS}) < clock_timestamp() OR NOT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = {OWNER_LOCK}
    AND classid = 0 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
FROM meta
"""


class LearnerCandidate:
    """Waits until this machine may learn."""

    def __init__(self, config: Config, stop: threading.Event) -> None:
        assert config.journal.url is not None
        self._config, self._stop = config, stop
        self._url, self._lock_seconds = config.journal.url, config.journal.lock_seconds
        self._folder = Path(config.data)
        self.state: State | None = None

    def wait(self) -> PostgresJournal | None:
        """The journal, owned by this process from now on; None: it is to end."""
        inbox = Inbox(self._url, self._lock_seconds, seconds=1.0)
        reader: Journal | None = None
        try:
            while not self._stop.is_set():
                try:
                    if self._is_vacant(inbox):
                        return PostgresJournal(
                            self._url, self._lock_seconds, own=True, lease=LEASE_SECONDS
                        )
                    reader = reader or journal_of(self._url)
                    self._follow(inbox, reader)
                except JournalOwned:
                    pass  # another candidate was first
                except (JournalError, psycopg.Error) as error:
                    log.warning("waiting for the database: %s", error)
                    if reader is not None:
                        reader.close()
                        reader = None
                self._stop.wait(LOOK_SECONDS)
            return None
        finally:
            inbox.close()
            if reader is not None:
                reader.close()

    def _is_vacant(self, inbox: Inbox) -> bool:
        if not inbox.run("SELECT to_regclass('topstory.meta') IS NOT NULL")[0][0]:
            return True
        began = monotonic()
        ((vacant,),) = inbox.run(_VACANT)
        return bool(vacant) and monotonic() - began < SLOW_SECONDS

    def _follow(self, inbox: Inbox, reader: Journal) -> None:
        """Apply what is new in the journal."""
        if not shared.is_prepared(inbox):
            return  # it is a journal of an earlier version, whose owner is still there
        if self.state is None:
            shared.copy_files(inbox, self._folder)
        starts = Starts(self._folder / "start")
        if self.state is None or self.state.number > reader.last()[0]:
            snapshots = Snapshots(self._folder / "snapshots")
            self.state = recover(reader, snapshots, starts, self._config.context)
        elif reader.last()[0] > self.state.number:
            try:
                self.state.apply(reader.read(self.state.number), starts.policy)
            except NotExcluded:  # what an operator excluded is in it already
                self.state = None
