"""Excludes what a key or a visitor did: a record, after which the state is as if it never was."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from pathlib import Path

import msgspec

from topstory.serving.config.loading import BadConfig
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import as_microseconds
from topstory.serving.journal.journal import Journal
from topstory.serving.journal.records import Decided, Entry, Excluded, Opened, Paid
from topstory.serving.state.exclusion import excludes
from topstory.serving.state.recovery.data_folder import open_folder
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.state.traffic import Traffic


class ExclusionReport(msgspec.Struct, frozen=True):
    """What was excluded."""

    record: int | None  # the number of the exclusion; None: there was nothing to exclude
    decisions: int
    payoffs: int


def exclude(
    config: Config,
    key: str | None = None,
    visitor: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> ExclusionReport:
    """Append an exclusion to the journal. The service must not be running."""
    if not Path(config.data).is_dir():
        raise FileNotFoundError(f"{config.data}: there is no data folder here")
    with closing(open_folder(config)) as folder:
        journal, state = folder.journal, folder.state
        visitors: tuple[bytes, ...] = ()
        if visitor is not None:
            secret = folder.config.bucket_secret
            visitors = tuple(
                Traffic(config.traffic_of(name), name, secret).digest(visitor)
                for name in state.pools
                if name in config.pools
            )
        wanted = _numbered(journal, key, visitors, since, until)
        found = [
            entry
            for entry, decided in journal.read(wanted.first - 1)
            if excludes([wanted], entry, decided)
        ]
        report = ExclusionReport(
            record=None,
            decisions=sum(isinstance(entry.record, Decided) for entry in found),
            payoffs=sum(isinstance(entry.record, Paid) for entry in found),
        )
        if not found:
            return report
        _check_reach(journal, folder.snapshots, found[0].number)
        last, _ = journal.last()
        journal.append([Entry(last + 1, folder.clock.now(), wanted)])
        folder.head_file.write(journal.head)
    return msgspec.structs.replace(report, record=last + 1)


def _numbered(
    journal: Journal,
    key: str | None,
    visitors: tuple[bytes, ...],
    since: datetime | None,
    until: datetime | None,
) -> Excluded:
    """The exclusion, with record numbers in place of times."""
    begin = 0 if since is None else as_microseconds(since)
    first, last = None, journal.last()[0]
    for entry, _ in journal.read():
        if first is None and entry.at >= begin and not isinstance(entry.record, Opened):
            first = entry.number
        if until is not None and entry.at >= as_microseconds(until):
            last = entry.number - 1
            break
    return Excluded(last + 1 if first is None else first, last, key, visitors)


def _check_reach(journal: Journal, snapshots: Snapshots, first: int) -> None:
    """Raise if the state before that record cannot be folded any more."""
    if journal.pruned() and not any(number < first for number in snapshots.numbers()):
        raise BadConfig(
            f"the first record to exclude is {first}, but earlier decisions are archived, and no "
            "snapshot is older: restore a backup from before it, or exclude a later time"
        )
