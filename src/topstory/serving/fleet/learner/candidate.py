"""Who learns: candidates follow the journal, and one takes over when the learner is gone.

A candidate has the state nearly up to date and the kernels loaded, so that it only has to read the
end of the journal. The database alone says who is the learner: by the lock, by the epoch, which
every write of a learner checks, and by signs of life, which are counted. A candidate measures by
its own steady clock how long there was none, while the database answered: so neither a clock that
is wrong nor a database that stood still makes a learner look dead.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import psycopg

from topstory.serving.config.schema import Config
from topstory.serving.fleet import shared
from topstory.serving.fleet.inbox import Inbox
from topstory.serving.journal.connect import journal_of
from topstory.serving.journal.journal import Journal, JournalError, JournalOwned
from topstory.serving.journal.postgres.connection import Connection
from topstory.serving.journal.postgres.journal import (
    JournalClaim,
    PostgresJournal,
    waiting_connection,
)
from topstory.serving.journal.postgres.lock import OWNER_LOCK
from topstory.serving.state.exclusion import NotExcluded
from topstory.serving.state.recovery.recovery import Starts, recover
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.state.state import State
from topstory.serving.state.traffic import Traffic
from topstory.serving.state.warm_up import warm_up

log = logging.getLogger("topstory.serving")

SILENT_SECONDS = 1.0  # without a sign of life a learner is replaced: it gives five in that time
OTHERS_SILENT_SECONDS = 2.5  # of one without a heartbeat: it writes once a second at least
LOOK_SECONDS = 0.1  # between two looks at who learns
FOLLOW_SECONDS = 0.5  # between two looks at the journal
SLOW_SECONDS = 0.4  # a look that takes longer says more about the database than about the learner
# But if all are slow, and one after the other finds no sign of life, that says enough: a learner
# that lives commits, or tries to, once a second, and may take five seconds for it.
PATIENT_SECONDS, PATIENT_LOOKS = 10.0, 15
_TABLES = (
    "SELECT to_regclass('topstory.meta') IS NOT NULL, to_regclass('topstory.lease') IS NOT NULL"
)
_LOOK = f"""
SELECT m.term, coalesce(l.beat, 0), to_jsonb(m) ->> 'renewed', EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = {OWNER_LOCK}
    AND classid = 0 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
FROM meta m LEFT JOIN LEASE l ON l.term = m.term
"""
_NO_LEASE = "(SELECT 0 AS term, 0 AS beat)"  # in the place of the table, before version 5


class LearnerSign(NamedTuple):
    """What a learner changes while it lives."""

    term: int
    beat: int  # 0: this one has no heartbeat
    renewed: str | None  # with each of its commits; None: in a journal of version 1


class Silence:
    """How long a learner has given no sign of life, by one candidate's own clock.

    >>> now = [0.0]
    >>> silence = Silence(clock=lambda: now[0])
    >>> silence.heard(LearnerSign(3, 7, "12:00"), took=0.01)
    False
    >>> for now[0] in (0.4, 0.7, 1.0):
    ...     over = silence.heard(LearnerSign(3, 7, "12:00"), took=0.01)
    >>> over
    True
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._last: LearnerSign | None = None
        self._since = self._looked = self._changed = clock()
        self._looks = 0  # since then

    def heard(self, sign: LearnerSign, took: float) -> bool:
        """Note what a look found, which took so long; whether the silence was too long.

        A look that was slow, or came late, shows that the database or this process stood still,
        and perhaps the learner for the same reason: the silence is measured anew. But not for ever.
        """
        now, before = self._clock(), self._looked
        self._looked, self._looks = now, self._looks + 1
        if sign != self._last:
            self._changed, self._looks = now, 0
        if sign != self._last or took > SLOW_SECONDS or now - before > LOOK_SECONDS + SLOW_SECONDS:
            self._last, self._since = sign, now
        allowed = SILENT_SECONDS if sign.beat else OTHERS_SILENT_SECONDS
        patience = now - self._changed >= PATIENT_SECONDS and self._looks >= PATIENT_LOOKS
        return sign.renewed is not None and (patience or now - self._since >= allowed)


class LearnerCandidate:
    """Waits until this machine may learn."""

    def __init__(self, config: Config, stop: threading.Event) -> None:
        assert config.journal.url is not None
        self._config, self._stop = config, stop
        self._url, self._lock_seconds = config.journal.url, config.journal.lock_seconds
        self._folder = Path(config.data)
        self._silence = Silence()
        self._has_lease = False
        self._followed = 0.0
        self._ready: Connection | None = None  # to take the journal by
        self._warm = False  # whether its kernels are loaded
        self.state: State | None = None

    def wait(self) -> PostgresJournal | None:
        """The journal, owned by this process from now on; None: it is to end."""
        inbox = Inbox(self._url, self._lock_seconds, seconds=1.0)
        reader: Journal | None = None
        try:
            while not self._stop.is_set():
                try:
                    vacant, silent = self._look(inbox)
                    if vacant:
                        return self._take(silent)
                    if monotonic() - self._followed > FOLLOW_SECONDS:
                        reader = reader or journal_of(self._url)
                        self._follow(inbox, reader)
                        self._followed = monotonic()
                    if self._ready is None or self._ready.closed:
                        self._ready = waiting_connection(self._url, self._lock_seconds)
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
            for each in (inbox, reader, self._ready):
                if each is not None:
                    each.close()

    def _take(self, silent: int | None) -> PostgresJournal:
        """The journal, by the connection that is ready."""
        connection, self._ready = self._ready, None
        if connection is None or connection.closed:
            connection = waiting_connection(self._url, self._lock_seconds)
        claim = JournalClaim(connection, silent)
        return PostgresJournal(self._url, self._lock_seconds, own=True, claim=claim)

    def _look(self, inbox: Inbox) -> tuple[bool, int | None]:
        """Whether somebody is wanted, and the epoch of a learner that gives no sign of life."""
        began = monotonic()
        if not self._has_lease:
            ((has_meta, self._has_lease),) = inbox.run(_TABLES)
            if not has_meta:
                return True, None
        lease = "lease" if self._has_lease else _NO_LEASE
        ((term, beat, renewed, held),) = inbox.run(_LOOK.replace("LEASE", lease))
        silent = self._silence.heard(LearnerSign(term, beat, renewed), monotonic() - began)
        return not held or silent, term if silent else None

    def _follow(self, inbox: Inbox, reader: Journal) -> None:
        """Apply what is new in the journal."""
        if not shared.is_prepared(inbox):
            return  # it is a journal of an earlier version, whose owner is still there
        try:
            self._apply(inbox, reader)
        except NotExcluded:  # what an operator excluded is in it already
            self.state = None
        except FileNotFoundError:  # a pool is new, and so is the policy that it began with
            self.state = None  # half of a batch may be in it: it is made anew, with the new files
        if not self._warm and self.state is not None:
            for name, pool in self.state.pools.items():
                if name in self._config.pools:
                    warm_up(pool, Traffic(self._config.traffic_of(name), name))
            self._warm = True
            log.info("ready to learn, at record %d", self.state.number)

    def _apply(self, inbox: Inbox, reader: Journal) -> None:
        if self.state is None:
            shared.copy_files(inbox, self._folder)
        starts, (last, _) = Starts(self._folder / "start"), reader.last()
        if self.state is None or self.state.number > last:
            snapshots = Snapshots(self._folder / "snapshots")
            self.state = recover(reader, snapshots, starts, self._config.context)
        elif last > self.state.number:
            self.state.apply(reader.read(self.state.number), starts.policy)
