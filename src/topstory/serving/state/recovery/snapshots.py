"""The state as files: safetensors for what was learned, JSON for what was counted.

    snapshots/000000012345/state.json        the number of the last record in it, articles, tallies
    snapshots/000000012345/front.safetensors the pool's policy; front.previous.safetensors, the one
                                             before it, if another was promoted

A snapshot is written whole or not at all. Two are kept, in case the newer one is damaged.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import threading
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from topstory.files import replaced_folder, sync
from topstory.policies import Policy
from topstory.serving.journal.records import Excluded
from topstory.serving.state.policy_file import PolicyChange
from topstory.serving.state.pool import Article, Pool, SeenByVisitor
from topstory.serving.state.state import State
from topstory.serving.state.state_copy import StateCopy
from topstory.serving.state.tally import Tally

KEPT_SNAPSHOTS = 2
FORMAT = "topstory-snapshot"
VERSION = 1
UNREADABLE = (OSError, ValueError, KeyError, msgspec.DecodeError)

log = logging.getLogger("topstory.serving")


class PoolFacts(msgspec.Struct, frozen=True):
    """What is not in the policy's own file."""

    articles: dict[str, Article]
    tally: Tally
    checksum: str  # of the policy's file
    taught: int | None = None  # missing in snapshots of earlier versions
    edits: dict[str, str] = {}  # msgspec gives each a dict of its own; missing in earlier versions
    previous: str | None = None  # checksum of the previous policy's file, if there is one
    changes: tuple[PolicyChange, ...] = ()
    promoted: int = 0
    seen: SeenByVisitor = ()  # the last articles of visitors, if contexts depend on them


class Contents(msgspec.Struct, frozen=True):
    """The contents of `state.json`."""

    format: str
    version: int
    number: int
    at: int
    dimension: int
    config: dict[str, Any]
    pools: dict[str, PoolFacts]
    mark: str | None = None  # of the batch that ends with that record; missing in earlier versions
    exclusions: tuple[Excluded, ...] = ()
    cuts: dict[int, int] = {}  # of a fleet's nodes


class Sealed(msgspec.Struct, frozen=True):
    """The file: its contents, and their checksum."""

    checksum: str
    contents: msgspec.Raw


class Snapshots:
    """The snapshots in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._writing = threading.Lock()

    def numbers(self) -> list[int]:
        """The numbers of the snapshots, the newest first."""
        names = (entry.name for entry in self.folder.iterdir() if entry.name.isdigit())
        return sorted((int(name) for name in names), reverse=True)

    def write(self, copy: StateCopy) -> Path:
        """Write a snapshot, and drop all but the last two."""
        # One at a time: a service that stops does not wait for the snapshot that it was taking.
        with self._writing:
            target = self.path(copy.number)
            if target.exists():
                return target
            with replaced_folder(target, _never_replaced) as fresh:
                self._fill(fresh, copy)
            # Records that it contains may be pruned: unlike other folders, it must be on the disk.
            sync(self.folder)
            for number in self.numbers()[KEPT_SNAPSHOTS:]:
                shutil.rmtree(self.path(number), ignore_errors=True)
            return target

    def newest(self) -> Iterator[State]:
        """The states that can be read, the newest first; damaged ones are logged."""
        for number in self.numbers():
            try:
                yield self.read(number)
            except UNREADABLE as error:
                log.error("snapshot %d cannot be used, trying the one before: %s", number, error)

    def set_aside(self, number: int) -> None:
        """Keep a snapshot under another name: it is not used any more."""
        self.path(number).rename(self.folder / f"lost-{number:012d}-{secrets.token_hex(4)}")

    def path(self, number: int) -> Path:
        """The folder of a snapshot."""
        return self.folder / f"{number:012d}"

    def _fill(self, folder: Path, copy: StateCopy) -> None:
        pools = {}
        for name, policy in copy.policies.items():
            pools[name] = {
                **msgspec.json.decode(copy.facts[name]),
                "checksum": _saved(policy, folder / f"{name}.safetensors"),
            }
            if name in copy.previous:
                path = folder / f"{name}.previous.safetensors"
                pools[name]["previous"] = _saved(copy.previous[name], path)
        contents = msgspec.json.encode(
            {
                "format": FORMAT,
                "version": VERSION,
                "number": copy.number,
                "at": copy.at,
                "dimension": copy.dimension,
                "config": copy.config,
                "pools": pools,
                "mark": None if copy.mark is None else copy.mark.hex(),
                "exclusions": copy.exclusions,
                "cuts": copy.cuts,
            }
        )
        sealed = Sealed(blake2b(contents, digest_size=16).hexdigest(), msgspec.Raw(contents))
        path = folder / "state.json"
        path.write_bytes(msgspec.json.encode(sealed))
        sync(path)
        sync(folder)

    def mark(self, number: int) -> bytes | None:
        """The mark of the batch that it ends with; any of UNREADABLE if it is damaged."""
        mark = _contents(self.path(number)).mark
        return None if mark is None else bytes.fromhex(mark)

    def read(self, number: int) -> State:
        """The state of a snapshot; any of UNREADABLE if it is damaged, or gone."""
        folder = self.path(number)
        contents = _contents(folder)
        state = State(contents.dimension)
        state.number, state.at, state.config = contents.number, contents.at, contents.config
        state.mark = None if contents.mark is None else bytes.fromhex(contents.mark)
        state.exclusions = list(contents.exclusions)
        state.cuts = dict(contents.cuts)
        for name, facts in contents.pools.items():
            policy = _loaded(folder / f"{name}.safetensors", facts.checksum)
            taught = contents.at if facts.taught is None else facts.taught
            pool = Pool(name, policy, contents.dimension, taught)
            pool.articles, pool.tally, pool.edits = facts.articles, facts.tally, facts.edits
            pool.changes, pool.promoted = list(facts.changes), facts.promoted
            pool.find_limits()
            if facts.previous is not None:
                pool.previous = _loaded(folder / f"{name}.previous.safetensors", facts.previous)
            pool.use_event_features(state.event, facts.seen)
            state.pools[name] = pool
        return state


def _saved(policy: Policy, path: Path) -> str:
    """Write a policy's file; returns its checksum."""
    policy.save(path)
    return checksum(path)


def _loaded(path: Path, expected: str) -> Policy:
    if checksum(path) != expected:
        raise ValueError(f"{path.name}: damaged: the checksum does not match")
    return Policy.load(path)


def _contents(folder: Path) -> Contents:
    """What `state.json` says, once its checksum is right."""
    sealed = msgspec.json.decode((folder / "state.json").read_bytes(), type=Sealed)
    raw = bytes(sealed.contents)
    if blake2b(raw, digest_size=16).hexdigest() != sealed.checksum:
        raise ValueError("state.json: damaged: the checksum does not match its contents")
    contents = msgspec.json.decode(raw, type=Contents)
    if (contents.format, contents.version) != (FORMAT, VERSION):
        raise ValueError(f"{contents.format} {contents.version} is not {FORMAT} {VERSION}")
    return contents


def _never_replaced(snapshot: Path) -> None:
    raise FileExistsError(f"{snapshot}: this snapshot exists already")


def checksum(path: Path) -> str:
    """BLAKE2b of a file."""
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()
