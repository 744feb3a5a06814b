"""Verification of a whole journal: every record is there, and is what was written."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from topstory.serving.journal.connect import SCHEMES, journal_of
from topstory.serving.journal.head_file import HEAD, read_head
from topstory.serving.journal.journal import DamagedJournal
from topstory.serving.state.recovery.lost_tail import contains


class Verified(msgspec.Struct, frozen=True):
    """A journal in which every record is what was written."""

    records: int
    last: int  # the number of the last record
    chained_from: int | None  # no record after this one is missing; null: no checksums yet


def verify(where: str) -> Verified:
    """Check the journal of a data folder, or at a URL; DamagedJournal names the first bad record.

    In a data folder, the journal must also have the last record that its service committed.
    """
    local = not where.startswith(SCHEMES)
    # Before the journal: a running service commits, and then writes this file.
    remembered = read_head(Path(where) / HEAD) if local else None
    with closing(journal_of(where)) as journal:
        try:
            checkpoint = journal.checkpoint()
            records = journal.check()
            last, _ = journal.last()
            if remembered is not None and not contains(journal, remembered, last):
                raise DamagedJournal(f"record {remembered.number} was committed, but is missing")
        except DamagedJournal as error:
            raise DamagedJournal(
                f"{where}: {error}. Stop the service, keep a copy of the journal, and restore the "
                "last good backup: see the operations page *A damaged journal*"
            ) from None
    return Verified(records, last, None if checkpoint is None else checkpoint.number)
