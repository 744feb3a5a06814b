"""From a data folder to a state: the newest good snapshot, and the journal after it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from topstory.files import locked
from topstory.policies import EXPLORERS, Policy
from topstory.policies.registry import policy as named_policy
from topstory.serving.config.feature_model import (
    FeatureModel,
    keep_feature_model,
    load_feature_model,
)
from topstory.serving.config.loading import BadConfig, policy_parameters
from topstory.serving.config.schema import Config, PolicyConfig, plain
from topstory.serving.journal.clock import Clock
from topstory.serving.journal.connect import own_journal
from topstory.serving.journal.journal import Journal
from topstory.serving.journal.records import AnyRecord, Configured, Decided, Entry, Opened, Placed
from topstory.serving.state.demo_articles import demo_articles
from topstory.serving.state.snapshots import Snapshots, checksum
from topstory.serving.state.state import Start, State

log = logging.getLogger("topstory.serving")


@dataclass(frozen=True)
class Opening:
    """All that a service begins with."""

    state: State
    journal: Journal
    snapshots: Snapshots
    start: Start
    last: int  # the number of the last record
    features: FeatureModel | None
    kept_features: str | None  # the file that they were read from
    lock: IO[bytes]  # held as long as the process lives


def open_folder(config: Config) -> Opening:
    """Recover what is there, open pools that are new, note a changed configuration."""
    folder = Path(config.data)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # contexts are nobody else's business
    with ExitStack() as undo:
        lock = undo.enter_context(closing(_locked(folder)))
        journal = own_journal(config)
        undo.callback(journal.close)
        snapshots = Snapshots(folder / "snapshots")
        starts = Starts(folder / "start")
        state = recover(journal, snapshots, starts, config.context)
        check_fits(state, config)
        _bring_up_to_date(state, journal, starts, config)
        for name in config.pools:
            _explore_as_configured(state.pools[name].policy, config.policy_of(name), name)
        last, _ = journal.last()
        features, kept = None, None
        if config.features is not None:
            kept = str(keep_feature_model(config.features, folder))
            try:
                features = load_feature_model(kept)
            except ValueError as error:
                raise BadConfig(f"features: {error}".replace(kept, config.features)) from None
        undo.pop_all()
    return Opening(state, journal, snapshots, starts.policy, last, features, kept, lock)


def recover(journal: Journal, snapshots: Snapshots, starts: Starts, dimension: int) -> State:
    """The exact state: the newest snapshot that can be read, then every record after it."""
    (last, _), pruned = journal.last(), journal.pruned()
    for state in snapshots.newest():
        if not goes_with(state.number, pruned, last):
            log.error("snapshot %d does not go with the journal: not used", state.number)
            continue
        state.apply(journal.read(state.number), starts.policy)
        return state
    if pruned:
        raise ValueError(
            "no snapshot can be read, and the journal's first decisions are archived: "
            "restore the folder `snapshots` from a backup"
        )
    state = State(dimension)
    state.apply(_of_dimension(journal.read(), dimension), starts.policy)
    return state


def goes_with(snapshot: int, pruned: int, last: int) -> bool:
    """Whether a journal has every record after a snapshot of that number, and those before."""
    return pruned - 1 <= snapshot <= last


Read = Iterable[tuple[Entry, Decided | None]]


def _of_dimension(records: Read, dimension: int) -> Read:
    """The same, unless they were begun with contexts of another length: then no fold would do."""
    for entry, decided in records:
        if isinstance(entry.record, Configured):
            begun = entry.record.config.get("context", dimension)
            if begun != dimension:
                raise _other_context("the journal", begun, dimension)
        yield entry, decided


def _other_context(what: str, begun: object, told: int) -> BadConfig:
    return BadConfig(f"context: {what} was begun with {begun}, not {told}: use another data folder")


class Starts:
    """The policies that pools began with, kept beside the journal: the fold begins with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def make(self, pool: str, told: PolicyConfig, dimension: int) -> Opened:
        """Keep the policy that the configuration asks for."""
        if told.start is not None:
            policy = Policy.load(told.start)
            if policy.model.dimension not in (None, dimension):
                raise BadConfig(
                    f"context: {told.start} was learned with {policy.model.dimension} numbers, "
                    f"but the configuration says {dimension}"
                )
        else:
            policy = named_policy(told.name, seed=told.seed, **policy_parameters(told))
        path = self._path(pool)
        policy.save(path)
        return Opened(pool, checksum(path))

    def policy(self, opened: Opened) -> Policy:
        """The policy that a pool began with."""
        path = self._path(opened.pool)
        if checksum(path) != opened.checksum:
            raise ValueError(f"{path}: not the file that pool {opened.pool!r} began with")
        return Policy.load(path)

    def _path(self, pool: str) -> Path:
        return self.folder / f"{pool}.safetensors"


def _bring_up_to_date(state: State, journal: Journal, starts: Starts, config: Config) -> None:
    records: list[AnyRecord] = []
    told = msgspec.json.decode(msgspec.json.encode(plain(config)))
    if state.config != told:
        records.append(Configured(told))
    for name in config.pools:
        if name not in state.pools:
            records.append(starts.make(name, config.policy_of(name), config.context))
            if config.demo:
                records += [Placed(name, facts) for facts in demo_articles()]
    if records:
        number, _ = journal.last()
        at = Clock(after=state.at).now()
        entries = [Entry(number + 1 + i, at, record) for i, record in enumerate(records)]
        journal.append(entries)
        state.apply(((entry, None) for entry in entries), starts.policy)


def check_fits(state: State, config: Config) -> None:
    """Whether it can go on with this configuration: BadConfig names the key."""
    if state.pools and state.dimension != config.context:
        raise _other_context(config.data, state.dimension, config.context)
    for name, pool in state.pools.items():
        if name not in config.pools:
            continue
        told = config.policy_of(name)
        if told.start is not None:
            continue
        wanted = named_policy(told.name, seed=told.seed, **policy_parameters(told)).model
        held = pool.policy.model
        if (wanted.name, wanted.parameters()) != (held.name, held.parameters()):
            raise BadConfig(
                f"policy: pool {name!r} was begun with {held.name} {held.parameters()}, not "
                f"{wanted.name} {wanted.parameters()}: give it another name, or another data folder"
            )


def _explore_as_configured(policy: Policy, told: PolicyConfig, pool: str) -> None:
    """How to explore may change at any start: it is no part of what was learned."""
    policy.seed = told.seed
    given = policy_parameters(told)
    if told.start is None:
        policy.explorer = named_policy(told.name, seed=told.seed, **given).explorer
        return
    explores = {each.name for entry in EXPLORERS.values() for each in entry.parameters}
    own = {name: value for name, value in given.items() if name in explores}
    if own:
        try:
            policy.explorer = type(policy.explorer)(**own)
        except TypeError:
            raise BadConfig(
                f"policy: pool {pool!r} explores by {policy.explorer.name}, "
                f"which takes no {', '.join(own)}"
            ) from None


def _locked(folder: Path) -> IO[bytes]:
    try:
        lock = locked(folder / "lock")
    except BlockingIOError:
        raise BlockingIOError(
            f"{folder}: another process serves from this folder; stop it, or set `data`"
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n".encode())
    lock.flush()
    return lock
