"""A journal that came back without its last records: noticed, and accepted only by the operator."""

from __future__ import annotations

import logging

from topstory.serving.journal.chain import Head
from topstory.serving.journal.journal import Journal
from topstory.serving.journal.records import Entry, TailLost
from topstory.serving.state.recovery.snapshots import UNREADABLE, Snapshots

log = logging.getLogger("topstory.serving")


class LostTail(ValueError):
    """The journal has lost records that were committed."""


def check_tail(journal: Journal, snapshots: Snapshots, remembered: Head | None) -> None:
    """Raise LostTail if a snapshot, or the remembered head, is not of this journal."""
    lost = _lost(journal, snapshots, remembered)
    if not lost:
        return
    end, committed = journal.head.number, max(lost.values())
    what = " and ".join(lost)
    if committed > end:
        missing = f"it ends at record {end}, but record {committed} was committed"
    else:
        missing = f"its record {committed} is not the one that was committed"
    raise LostTail(
        f"the journal has lost records: {missing} (by {what}). Was an older copy restored, or a "
        "replica promoted that was behind? Restore the whole journal. To go on without these "
        "records, and without the feedback in them, run `topstory serve --accept-lost-tail` once"
    )


def accept_lost_tail(journal: Journal, snapshots: Snapshots, remembered: Head | None) -> None:
    """Set snapshots of lost records aside, and record the loss. Numbers are not given again."""
    lost = _lost(journal, snapshots, remembered)
    if not lost:
        return
    for number in snapshots.numbers():
        if f"snapshot {number}" in lost:
            snapshots.set_aside(number)
    last, at = journal.last()
    committed = max(*lost.values(), last)
    journal.append([Entry(committed + 1, at, TailLost(committed))])
    log.warning("records after %d up to %d are lost: accepted by the operator", last, committed)


def _lost(journal: Journal, snapshots: Snapshots, remembered: Head | None) -> dict[str, int]:
    """What is not of this journal: its name, and the number of its last record."""
    known = {} if remembered is None else {"the file `head`": remembered}
    for number in snapshots.numbers():
        try:
            mark = snapshots.mark(number)
        except UNREADABLE:
            mark = None  # recovery reports it
        known[f"snapshot {number}"] = Head(number, mark or b"")
    end = journal.head.number
    return {what: head.number for what, head in known.items() if not contains(journal, head, end)}


def contains(journal: Journal, head: Head, end: int) -> bool:
    """Whether the journal, which ends at that record, has this batch.

    Without a mark, or if it is archived, by its number.
    """
    checkpoint = journal.checkpoint()
    if head.number > max(end, checkpoint.number if checkpoint else 0):
        return False
    if not head.mark or checkpoint is None or head.number < checkpoint.number:
        return True
    return journal.mark(head.number) == head.mark
