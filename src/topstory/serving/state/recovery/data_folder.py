"""A data folder, opened: locked, recovered, and brought in line with the configuration."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from topstory.feature_identity import FeatureModelMismatch, same_feature_model
from topstory.files import lock_folder, locked
from topstory.policies import EXPLORERS, REGISTRY, Policy
from topstory.policies.registry import without_prior
from topstory.serving.config.feature_model import (
    FeatureModel,
    events_of,
    keep_feature_model,
    load_feature_model,
)
from topstory.serving.config.loading import BadConfig, policy_parameters
from topstory.serving.config.schema import Config, PolicyConfig
from topstory.serving.journal.chain import Head
from topstory.serving.journal.clock import MAX_JUMP, SECOND, Clock
from topstory.serving.journal.clock_file import CLOCK, expected, note
from topstory.serving.journal.connect import FILE, own_journal
from topstory.serving.journal.head_file import HEAD, HeadFile, read_head
from topstory.serving.journal.journal import Journal
from topstory.serving.journal.records import AnyRecord, ClockSet, Configured, Entry, Placed
from topstory.serving.state.recovery.demo_articles import demo_articles
from topstory.serving.state.recovery.inherited import inherited, recorded
from topstory.serving.state.recovery.lost_tail import accept_lost_tail, check_tail
from topstory.serving.state.recovery.recovery import Starts, check_fits, followed
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.state.state import Start, State

log = logging.getLogger("topstory.serving")


@dataclass(frozen=True)
class DataFolder:
    """Everything that a service begins with."""

    state: State
    journal: Journal
    snapshots: Snapshots
    start: Start
    last: int  # the number of the last record
    features: FeatureModel | None
    kept_features: str | None  # the file that they were read from
    head_file: HeadFile
    clock: Clock
    config: Config  # with what the folder settles
    resources: ExitStack  # the journal, files, and locks that are held as long as it is open

    def close(self) -> None:
        """Close the journal, and let another process have the folder."""
        self.resources.close()


@dataclass(frozen=True)
class StartOptions:
    """What an operator allows this one start to do."""

    standby: bool = False  # wait until the owner of the journal is gone
    accept_lost_tail: bool = False  # go on though the journal has lost its last records
    set_clock: bool = False  # set the journal's time to the system clock's


NOTHING_ALLOWED = StartOptions()


def open_folder(
    config: Config,
    options: StartOptions = NOTHING_ALLOWED,
    own: Callable[[Config], Journal] = own_journal,
    known: State | None = None,
    wall: Callable[[], int] | None = None,
    prepared: Callable[[], None] = lambda: None,
) -> DataFolder:
    """Recover what is there, open pools that are new, record a changed configuration.

    Args:
        config: of the service.
        options: what the operator allows this one start to do.
        own: takes the journal.
        known: the state at an earlier record, if this process followed the journal.
        wall: a clock, in microseconds, other than the system's; it is trusted.
        prepared: called when the files that new records need are there, before those are written.
    """
    folder = Path(config.data)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # contexts are private
    with ExitStack() as undo:
        _lock(folder, undo)
        snapshots, remembered = Snapshots(folder / "snapshots"), read_head(folder / HEAD)
        _check_there(config, snapshots, remembered)
        journal = own(config)
        undo.callback(journal.close)
        starts = Starts(folder / "start")
        if options.accept_lost_tail:
            accept_lost_tail(journal, snapshots, remembered)
        else:
            check_tail(journal, snapshots, remembered)
        head_file = undo.enter_context(closing(HeadFile(folder / HEAD)))
        state = followed(known, journal, snapshots, starts, config.context)
        check_fits(state, config, starts)
        clock = Clock(after=state.at, wall=wall)
        if wall is None:
            clock = _checked_clock(state, journal, starts, config, options.set_clock)
        config = inherited(config, state)
        features, kept = _features(config, state, folder)
        _check_event_features(config, state, features)
        _record_changes(state, journal, starts, config, clock, features, prepared)
        for name in [each for each in config.pools if not state.pools[each].promoted]:
            _explore_as_configured(state.pools[name].policy, config.policy_of(name), name)
        last, _ = journal.last()
        state.mark = journal.head.mark
        head_file.write(journal.head)
        note(folder / CLOCK, clock.now())
        opened = undo.pop_all()
    return DataFolder(
        *(state, journal, snapshots, starts.policy, last, features, kept, head_file, clock),
        *(config, opened),
    )


def _check_there(config: Config, snapshots: Snapshots, remembered: Head | None) -> None:
    """FileNotFoundError if the journal's file is missing, but not what was made from it."""
    path = Path(config.data) / FILE
    if config.journal.url is not None or path.exists():
        return
    number = max([0 if remembered is None else remembered.number, *snapshots.numbers()])
    if number:
        raise FileNotFoundError(
            f"{path}: the journal is missing, but the folder belongs to one of {number} records "
            "(by its snapshots or the file `head`): restore it from a backup. To begin anew, set "
            "`data` to another folder"
        )


def _checked_clock(
    state: State, journal: Journal, starts: Starts, config: Config, set_clock: bool
) -> Clock:
    """The journal's clock. If it does not agree with the system clock, report or set it."""
    downtime = int(config.journal.downtime_hours * 3_600 * SECOND)
    found = expected(Path(config.data) / CLOCK, state.at, downtime)
    clock = Clock(after=state.at, expected=found)
    ahead, behind = clock.ahead, clock.behind
    if max(ahead, behind) <= MAX_JUMP:
        return clock
    if set_clock:
        _append(state, journal, starts, [ClockSet(clock.now())], Clock().now())
        change = (behind - ahead) // SECOND
        log.warning("the journal's time was set by %+d seconds, to the system clock's", change)
        return Clock(after=state.at)
    if ahead:
        log.error(
            "the journal's time is %d seconds ahead of the system clock: articles appear and "
            "expire too early. If the clock is right now, restart once with --set-clock",
            ahead // SECOND,
        )
    else:
        log.error(
            "the system clock is %d seconds ahead of the journal's last sign of life: the "
            "journal's time does not follow. If the clock is right, restart once with --set-clock",
            behind // SECOND,
        )
    return clock


def _features(config: Config, state: State, folder: Path) -> tuple[FeatureModel | None, str | None]:
    """The feature model and its copy in the folder. BadConfig if policies learned another's."""
    if config.features is None:
        return None, None
    try:
        features = load_feature_model(config.features)
        used = state.config.get("feature_model")
        held = [("the service", used if isinstance(used, str) else None)]
        for name, pool in state.pools.items():
            held.append((f"the policy of pool {name!r}", pool.policy.feature_model))
        for what, identity in held:
            same_feature_model([(what, identity), (config.features, features.identity)])
    except FeatureModelMismatch as error:
        raise BadConfig(
            f"features: {error}. `topstory promote --features` changes to another model, together "
            "with a policy"
        ) from None
    except ValueError as error:
        raise BadConfig(f"features: {error}") from None
    return features, str(keep_feature_model(config.features, folder))


def _event_features(features: FeatureModel | None) -> int:
    event = events_of(features)
    return 0 if event is None else len(event.feature_columns)


def _check_event_features(config: Config, state: State, features: FeatureModel | None) -> None:
    """BadConfig if contexts need numbers of events that could not be made."""
    if features is None and state.config.get("event"):
        raise BadConfig(
            "features: the service's contexts have numbers of events, which its feature model "
            "makes: set `features`"
        )
    event = events_of(features)
    for name, pool in state.pools.items() if features is not None else ():
        try:
            pool.policy.model.check_event_features(_event_features(features))
        except ValueError as error:
            raise BadConfig(f"features: pool {name!r}: {error}") from None
    if event is None:
        return
    if "seen_before" in event.used and (config.workers > 1 or config.used_role != "alone"):
        raise BadConfig(
            "workers: seen_before needs one process, which knows what visitors saw last: set "
            '`workers = 1` and `role = "alone"`, or use a feature model without it'
        )
    if config.context < len(event.columns) + 1:
        raise BadConfig(
            f"context: {config.context} numbers are too few for this feature model, whose events "
            f"alone have {len(event.columns)}; `topstory features show` says how many it makes"
        )
    for name in config.pools:
        if REGISTRY[config.policy_of(name).used_name].model.name == "segmented":
            raise BadConfig(
                f"policy: pool {name!r} takes the largest number of a context for the user's "
                "segment, and some are of the event: choose a policy without segments"
            )


def _record_changes(
    state: State,
    journal: Journal,
    starts: Starts,
    config: Config,
    clock: Clock,
    features: FeatureModel | None,
    prepared: Callable[[], None],
) -> None:
    """Append what is new in the configuration to the journal, and apply it to the state."""
    records: list[AnyRecord] = []
    configured = recorded(config, state, features)
    if state.config != configured:
        records.append(Configured(configured))
    identity = None if features is None else features.identity
    for name in config.pools:
        if name not in state.pools:
            known = (config.policy_of(name), config.context, identity)
            records.append(starts.make(name, *known, _event_features(features)))
            if config.demo:
                records += [Placed(name, facts) for facts in demo_articles()]
    prepared()
    if records:
        _append(state, journal, starts, records, clock.now())


def _append(
    state: State, journal: Journal, starts: Starts, records: Sequence[AnyRecord], at: int
) -> None:
    """Append records to the journal, and apply them to the state."""
    number, _ = journal.last()
    entries = [Entry(number + 1 + i, at, record) for i, record in enumerate(records)]
    journal.append(entries)
    state.apply(((entry, None) for entry in entries), starts.policy)


def _explore_as_configured(policy: Policy, wanted: PolicyConfig, pool: str) -> None:
    """Exploration may change at any start: it is no part of what was learned."""
    policy.seed = wanted.seed
    given = policy_parameters(wanted)
    if wanted.start is None:
        policy.explorer = without_prior(wanted.used_name, seed=wanted.seed, **given).explorer
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


def _lock(folder: Path, resources: ExitStack) -> None:
    """Lock a file with this process's id, and the folder itself: the file could be deleted."""
    try:
        lock = resources.enter_context(closing(locked(folder / "lock")))
        held = lock_folder(folder)
    except BlockingIOError:
        raise BlockingIOError(
            f"{folder}: another process serves from this folder; stop it, or set `data` "
            "(`topstory promote --key-file` asks the running service)"
        ) from None
    if held is not None:
        resources.callback(os.close, held)
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n".encode())
    lock.flush()
