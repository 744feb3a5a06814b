"""Backup of a data folder while its service runs; a service can start from the copy.

The order makes the parts fit. Snapshots are copied before the journal, so that the journal has all
of their records. The rest follows the journal, so that everything its records need is there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import msgspec

from topstory.files import replaced_folder
from topstory.serving.config.feature_model import FILE as FEATURES
from topstory.serving.config.loading import BadConfig
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import as_datetime
from topstory.serving.journal.connect import FILE
from topstory.serving.journal.sqlite import SqliteJournal
from topstory.serving.state.recovery.recovery import Starts, check_fits, matches_journal, recover
from topstory.serving.state.recovery.snapshots import UNREADABLE, Snapshots

MAX_ATTEMPTS = 5
SECRETS = ("keys.toml", "signing.toml")


class BackedUp(msgspec.Struct, frozen=True):
    """A backup that was written and opened successfully."""

    out: str
    record: int  # the number of the last record
    at: datetime  # its time
    snapshots: int
    archived: int  # log folders
    bytes: int


def back_up(
    config: Config,
    out: Path,
    file: Path | None = None,
    progress: Callable[[str], None] = lambda words: None,
) -> BackedUp:
    """Copy all that a service needs to continue, whole or not at all, and open the copy.

    Args:
        config: the configuration of the service, which may be running.
        out: the new folder; it must not exist.
        file: the configuration file, copied too.
        progress: called with what is being done.
    """
    if config.journal.url is not None:
        raise BadConfig(
            "journal.url: this journal is in PostgreSQL; use its own backup. Copy the folders "
            f"snapshots and start, {FEATURES} and *.toml from {config.data}, then the database, "
            "with pg_dump --schema=topstory"
        )
    data = Path(config.data)
    if not (data / FILE).is_file():
        raise FileNotFoundError(f"{data}: there is no journal in this folder")
    with replaced_folder(out, _refuse) as fresh:
        fresh.chmod(0o700)  # it holds contexts and secrets
        pruned = _copy_state(config, fresh, progress)
        # After the journal: a pool's start is written before the record that opens the pool,
        progress("copying the initial policies")
        copy_folder(data / "start", fresh / "start")
        # and an archive before its decisions are deleted from the journal.
        progress("copying the archive")
        archived = _copy_archive(data / "archive", fresh / "archive", pruned)
        _copy_files(data, fresh, file)
        progress("opening the copy")
        record, at = _opened(config, fresh)
        copied = sum(path.stat().st_size for path in fresh.rglob("*") if path.is_file())
        kept = len(Snapshots(fresh / "snapshots").numbers())
    return BackedUp(str(out), record, as_datetime(at), kept, archived, copied)


def _refuse(out: Path) -> None:
    raise FileExistsError(f"{out}: already exists; a backup needs a new folder")


def _copy_state(config: Config, fresh: Path, progress: Callable[[str], None]) -> int:
    """Copy snapshots and journal; returns the number below which decisions are archived."""
    data = Path(config.data)
    for _ in range(MAX_ATTEMPTS):
        progress("copying the snapshots")
        numbers = copy_snapshots(Snapshots(data / "snapshots"), fresh / "snapshots")
        progress("copying the journal")
        with closing(SqliteJournal(data / FILE, config.journal.lock_seconds)) as journal:
            journal.copy(fresh / FILE)
        with closing(SqliteJournal(fresh / FILE)) as copied:
            (last, _), pruned = copied.last(), copied.pruned()
        if not pruned or any(matches_journal(number, pruned, last) for number in numbers):
            return pruned
        # Meanwhile the service took newer snapshots, and archived what those contain.
        (fresh / FILE).unlink()
    raise ValueError(
        f"{data}: the journal's first decisions are archived, and in {MAX_ATTEMPTS} attempts no "
        "snapshot could be copied that fits the rest. If the service's log says that snapshots "
        "are damaged, let it take new ones; otherwise try again"
    )


def copy_snapshots(source: Snapshots, target: Path) -> list[int]:
    """Copy the intact snapshots; returns their numbers. The service may delete one meanwhile."""
    shutil.rmtree(target, ignore_errors=True)
    copies = Snapshots(target)
    whole = []
    for number in source.numbers():
        try:
            copy_folder(source.path(number), copies.path(number))
        except FileNotFoundError:
            shutil.rmtree(copies.path(number), ignore_errors=True)
            continue
        try:
            copies.read(number)
        except UNREADABLE:
            shutil.rmtree(copies.path(number))
        else:
            whole.append(number)
    return whole


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder; an error names the first file that cannot be copied."""
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.is_dir():
            copy_folder(entry, target / entry.name)
        else:
            shutil.copyfile(entry, target / entry.name)


def _copy_archive(source: Path, target: Path, pruned: int) -> int:
    """Copy the rounds whose decisions the copied journal no longer has; returns how many folders.

    Later rounds are still in the journal; a service that starts from it archives them.
    """
    rounds = [
        each
        for each in source.glob("*/*-*")
        if (number := each.name.partition("-")[0]).isdecimal() and int(number) <= pruned
    ]
    for each in rounds:
        copy_folder(each, target / each.parent.name / each.name)
    return len(rounds)


def _copy_files(data: Path, fresh: Path, file: Path | None) -> None:
    named = {data / name: name for name in (*SECRETS, FEATURES)}
    if file is not None:
        named[file] = "topstory.toml"
    for path, name in named.items():
        if path.exists():
            shutil.copyfile(path, fresh / name)
            (fresh / name).chmod(0o600)


def _opened(config: Config, fresh: Path) -> tuple[int, int]:
    """Open the copy as a start would; returns the number and time of its last record."""
    with closing(SqliteJournal(fresh / FILE)) as journal:
        journal.check()
        starts, snapshots = Starts(fresh / "start"), Snapshots(fresh / "snapshots")
        state = recover(journal, snapshots, starts, config.context)
        check_fits(state, config, starts)
        last, at = journal.last()
        if state.number != last:
            raise ValueError(
                f"the copy's state ends at record {state.number}, its journal at {last}"
            )
    return last, at
