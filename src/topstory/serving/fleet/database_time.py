"""The database's clock, as every machine of a fleet tells the time.

Machines' own clocks may differ by minutes. Each asks the database once in a while, and counts on
from there by its steady clock.
"""

from __future__ import annotations

import psycopg

from topstory.serving.journal.clock import SECOND, steady_now
from topstory.serving.journal.journal import JournalError
from topstory.serving.journal.postgres.connection import Connection, one_line

MEASURE_SECONDS = 30  # between two measurements
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class DatabaseTime:
    """Microseconds since 1970, by the database."""

    def __init__(self) -> None:
        self._ahead = 0  # of the steady clock
        self._measured: int | None = None

    def measure(self, connection: Connection) -> None:
        """Ask the database, unless that was done a moment ago; JournalError."""
        began = steady_now()
        if self._measured is not None and began - self._measured < MEASURE_SECONDS * SECOND:
            return
        try:
            ((found,),) = connection.execute(_NOW).fetchall()
        except psycopg.Error as error:
            raise JournalError(one_line(error)) from None
        ended = steady_now()
        self._ahead, self._measured = int(found) - (began + ended) // 2, ended

    def now(self) -> int:
        """The time; it may go back by what two measurements differ."""
        return steady_now() + self._ahead
