"""A sign of life beside the journal: its time, and what the machine's steady clock showed then.

It tells a start how late it can be. Without a reboot the steady clock knows that to the second; a
reboot, or another machine, leaves only a guess: how long a service may have been down.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

import msgspec

from topstory.files import replaced_file
from topstory.serving.journal.clock import MAX_JUMP, steady_now

CLOCK = "clock"  # its name in the data folder

log = logging.getLogger("topstory.serving")


class SignOfLife(msgspec.Struct, frozen=True):
    """When the service was last known to run."""

    at: int  # the journal's time
    steady: int  # microseconds
    boot: str  # during which the steady clock went on


class Expected(NamedTuple):
    """What time it should be at a start, and by how much more the system clock is followed."""

    at: int
    slack: int


def expected(path: Path, last: int, downtime: int) -> Expected | None:
    """What time it should be, after a record of the time `last`; None: nothing tells.

    `downtime`: how long the service may have been down, if only that bounds it.
    """
    noted = _read(path)
    if noted is not None and noted.boot and noted.boot == _boot():
        return Expected(noted.at + steady_now() - noted.steady, MAX_JUMP)
    known = max(last, 0 if noted is None else noted.at)
    return Expected(known, downtime) if known else None


def note(path: Path, at: int) -> None:
    """Write that the service runs, and that this is the journal's time."""
    try:
        with replaced_file(path, 0o600) as file:
            file.write(msgspec.json.encode(SignOfLife(at, steady_now(), _boot())))
    except OSError as error:  # a start then relies on the last record
        log.error("could not note the time in the file `clock`: %s", error)


def _read(path: Path) -> SignOfLife | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=SignOfLife)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _boot() -> str:
    """The id of this run of the machine; empty where the system gives none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
