"""The state of a journal: the newest good snapshot, and every record after it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from topstory.feature_identity import FeatureModelMismatch, same_feature_model
from topstory.models import Prior
from topstory.policies import REGISTRY, Policy
from topstory.policies.registry import without_prior
from topstory.serving.config.loading import BadConfig, policy_parameters
from topstory.serving.config.schema import Config, PolicyConfig
from topstory.serving.journal.journal import Journal
from topstory.serving.journal.records import Configured, Decided, Entry, Excluded, Opened
from topstory.serving.state.exclusion import NotExcluded
from topstory.serving.state.pool import Pool
from topstory.serving.state.recovery.snapshots import Snapshots, checksum
from topstory.serving.state.state import State

log = logging.getLogger("topstory.serving")


def recover(journal: Journal, snapshots: Snapshots, starts: Starts, dimension: int) -> State:
    """The exact state: the newest snapshot that can be read, then every record after it."""
    exclusions: list[Excluded] = []
    while True:
        try:
            return _folded(journal, snapshots, starts, dimension, exclusions)
        except NotExcluded as found:  # once for each exclusion that no snapshot has yet
            exclusions = [*exclusions, found.exclusion]


def followed(
    known: State | None, journal: Journal, snapshots: Snapshots, starts: Starts, dimension: int
) -> State:
    """The exact state, from one at an earlier record if that is known."""
    if known is None or known.dimension != dimension:
        return recover(journal, snapshots, starts, dimension)
    try:
        known.apply(journal.read(known.number), starts.policy)
    except NotExcluded:  # what an operator excluded is in it already
        return recover(journal, snapshots, starts, dimension)
    return known


def _folded(
    journal: Journal,
    snapshots: Snapshots,
    starts: Starts,
    dimension: int,
    exclusions: list[Excluded],
) -> State:
    """The state without these records. Raises NotExcluded if the journal excludes others too."""
    (last, _), pruned = journal.last(), journal.pruned()
    for state in snapshots.newest():
        new = [each for each in exclusions if each not in state.exclusions]
        if any(each.first <= state.number for each in new):
            continue
        state.exclusions += new
        if not matches_journal(state.number, pruned, last):
            log.error("snapshot %d does not match the journal: not used", state.number)
            continue
        state.apply(journal.read(state.number), starts.policy)
        return state
    if pruned:
        raise ValueError(
            "no snapshot can be read, and the journal's first decisions are archived: "
            "restore the folder `snapshots` from a backup"
        )
    state = State(dimension)
    state.exclusions = list(exclusions)
    state.apply(_of_dimension(journal.read(), dimension), starts.policy)
    return state


def matches_journal(snapshot: int, pruned: int, last: int) -> bool:
    """Whether a journal has every record after a snapshot of that number, and those before."""
    return pruned - 1 <= snapshot <= last


Records = Iterable[tuple[Entry, Decided | None]]


def _of_dimension(records: Records, dimension: int) -> Records:
    """The records, unless they began with contexts of another length: BadConfig."""
    for entry, decided in records:
        if isinstance(entry.record, Configured):
            begun = entry.record.config.get("context", dimension)
            if begun != dimension:
                raise _other_context("the journal", begun, dimension)
        yield entry, decided


def _other_context(what: str, begun: object, wanted: int) -> BadConfig:
    return BadConfig(
        f"context: {what} was begun with {begun}, not {wanted}: use another data folder"
    )


def _configured(wanted: PolicyConfig, prior: Prior | None) -> Policy:
    given = policy_parameters(wanted) | ({} if prior is None else {"prior": prior})
    return without_prior(wanted.used_name, seed=wanted.seed, **given)


class Starts:
    """The policies that pools began with, kept beside the journal: recovery begins with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def make(
        self,
        pool: str,
        wanted: PolicyConfig,
        dimension: int,
        features: str | None = None,
        event: int = 0,
    ) -> Opened:
        """Save the policy that the configuration asks for.

        `features`: the service's model; `event`: how many numbers of its contexts are features of
        articles that change with the event.
        """
        if wanted.start is not None:
            try:
                policy = Policy.load(wanted.start)
            except (OSError, ValueError) as error:
                raise BadConfig(f"policy.start: {error}") from None
            try:
                same_feature_model(
                    [(wanted.start, policy.feature_model), ("the service", features)]
                )
            except FeatureModelMismatch as error:
                raise BadConfig(f"policy.start: {error}") from None
            if policy.model.dimension not in (None, dimension):
                raise BadConfig(
                    f"context: {wanted.start} was learned with {policy.model.dimension} numbers, "
                    f"but the configuration says {dimension}"
                )
            check_beside_start(wanted, policy)
        else:
            policy = _configured(wanted, None if wanted.prior is None else Prior.load(wanted.prior))
            if policy.model.prior is not None:
                try:
                    policy.model.prior.check_dimension(dimension)
                except ValueError as error:
                    raise BadConfig(f"policy.prior: {error}") from None
            policy.feature_model = features
        try:
            policy.model.use_event_features(event)
        except ValueError as error:
            raise BadConfig(f"policy: {error}") from None
        path = self._path(pool)
        policy.save(path)
        return Opened(pool, checksum(path))

    def policy(self, opened: Opened) -> Policy:
        """The policy that a pool began with."""
        path = self._path(opened.pool)
        if checksum(path) != opened.checksum:
            raise ValueError(f"{path}: not the file that pool {opened.pool!r} began with")
        return Policy.load(path)

    def loaded(self, pool: str) -> Policy:
        """The policy that a pool began with, in the file of this folder."""
        return Policy.load(self._path(pool))

    def began_with(self, pool: str, path: Path) -> bool:
        """Whether a pool began with the policy in that file."""
        one, other = self.loaded(pool), Policy.load(path)
        try:
            other.model.use_event_features(one.model.event_features)
        except ValueError:
            return False
        kept, given = one.model.arrays(), other.model.arrays()
        return (
            (one.model.name, one.model.parameters(), one.model.roster.ids)
            == (other.model.name, other.model.parameters(), other.model.roster.ids)
            and kept.keys() == given.keys()
            and all(np.array_equal(kept[field], given[field]) for field in kept)
        )

    def _path(self, pool: str) -> Path:
        return self.folder / f"{pool}.safetensors"


def check_beside_start(wanted: PolicyConfig, policy: Policy) -> None:
    """BadConfig if a key beside `start` contradicts the policy in that file."""
    held = (("model", policy.model.name), ("explorer", policy.explorer.name))
    if wanted.name is not None:
        entry = REGISTRY[wanted.name]
        for (what, found), named in zip(held, (entry.model.name, entry.explorer.name), strict=True):
            if named != found:
                raise BadConfig(
                    f"policy.name: {wanted.name} has the {what} {named}, but the policy that "
                    f"`start` names has {found}: leave one of them out"
                )
    stored, explores = policy.model.parameters(), policy.explorer.parameters()
    for name, value in policy_parameters(wanted).items():
        if name not in stored and name not in explores:
            names = " × ".join(found for _, found in held)
            raise BadConfig(
                f"policy.{name}: the policy that `start` names is {names}, which takes no {name}: "
                "leave it out"
            )
        if name in stored and stored[name] != value:
            raise BadConfig(
                f"policy.{name}: {value:g}, but the policy that `start` names has "
                f"{stored[name]:g}: leave it out"
            )


def check_fits(state: State, config: Config, starts: Starts) -> None:
    """Raise BadConfig, with the key, if the state cannot go on with this configuration."""
    if state.pools and state.dimension != config.context:
        raise _other_context(config.data, state.dimension, config.context)
    for name, pool in state.pools.items():
        if name not in config.pools:
            continue
        wanted = config.policy_of(name)
        if pool.promoted:
            _check_unchanged(name, pool, wanted, state)
        elif wanted.start is not None:
            _check_start(name, wanted, starts)
        else:
            _check_model(name, pool, wanted)


def _check_model(name: str, pool: Pool, wanted: PolicyConfig) -> None:
    held = pool.policy.model
    # The pool keeps the prior that it began with, whatever became of the file.
    model = _configured(wanted, held.prior if wanted.prior is not None else None).model
    model.use_event_features(held.event_features)  # which follow from the feature model
    same = (model.name, model.parameters()) == (held.name, held.parameters())
    if not same or (held.prior is None) != (wanted.prior is None):
        raise BadConfig(
            f"policy: pool {name!r} was begun with {held.name} {held.parameters()}, not "
            f"{model.name} {model.parameters()}: give it another name, or another data folder, or "
            "change it with `topstory promote`"
        )


def _check_unchanged(name: str, pool: Pool, wanted: PolicyConfig, state: State) -> None:
    """The configuration of a pool that was given another policy may say what it said before."""
    recorded: Any = state.config
    before = recorded["pools"].get(name, {}).get("policy") or recorded["policy"]
    now = msgspec.json.decode(msgspec.json.encode(wanted)) | {"name": wanted.used_name}
    if {**now, **before} != now:
        raise BadConfig(
            f"policy: pool {name!r} was given another policy since, at record {pool.promoted}: "
            "leave this as it was, and use `topstory promote` to change it"
        )


def _check_start(name: str, wanted: PolicyConfig, starts: Starts) -> None:
    """The file may be gone, but must not be another one than the pool began with."""
    path = Path(wanted.start or "")
    check_beside_start(wanted, starts.loaded(name))
    if path.exists() and not starts.began_with(name, path):
        raise BadConfig(
            f"policy.start: pool {name!r} was not begun with the policy in {path}: give it another "
            "name, or another data folder, or change it with `topstory promote`"
        )
