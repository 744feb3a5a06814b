"""The state of the service: a pure function of the journal's records, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from topstory.policies import Policy
from topstory.serving.journal.records import (
    ClockSet,
    Configured,
    Cut,
    Decided,
    Edit,
    Entry,
    Excluded,
    Opened,
    Paid,
    Placed,
    Promoted,
    Removed,
    TailLost,
)
from topstory.serving.state.exclusion import NotExcluded, excludes
from topstory.serving.state.policy_file import PolicyChange, content_name, policy_in, summary
from topstory.serving.state.pool import EventNumbers, Pool, edit_of
from topstory.serving.state.sketch import StateSketch

MAX_BATCH = 4096  # records whose trials are learned together

Start = Callable[[Opened], Policy]  # the policy that a pool began with


class State:
    """All pools, and the number of the last record that was applied."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.number = 0
        self.at = 0
        self.mark: bytes | None = None  # of the batch that ends with that record
        self.pools: dict[str, Pool] = {}
        self.config: dict[str, object] = {}
        self.exclusions: list[Excluded] = []  # what the state has not learned from
        self.cuts: dict[int, int] = {}  # by node of a fleet: its last record that is in here

    def apply(self, entries: Iterable[tuple[Entry, Decided | None]], start: Start) -> None:
        """Apply the next records; a payoff comes with its decision.

        In batches or one by one: the state is the same, to the bit.
        """
        for count, (entry, decided) in enumerate(entries, 1):
            record = entry.record
            if entry.number <= self.number:
                raise ValueError(f"record {entry.number} came after record {self.number}")
            if self.exclusions and excludes(self.exclusions, entry, decided):
                pass
            elif isinstance(record, Decided):
                pool = self.pools[record.pool]
                if pool.show(record):
                    pool.taught = entry.at
            elif isinstance(record, Paid):
                assert decided is not None
                pool = self.pools[decided.pool]
                if pool.pay(decided, record):
                    pool.taught = entry.at
            else:
                self._apply_rare(entry, record, start)
            self.number, self.at = entry.number, entry.at
            if not count % MAX_BATCH:
                for pool in self.pools.values():
                    pool.learn()
        for pool in self.pools.values():
            pool.learn()

    def _apply_rare(
        self,
        entry: Entry,
        record: Edit | Opened | Configured | TailLost | ClockSet | Excluded | Cut,
        start: Start,
    ) -> None:
        if isinstance(record, Placed | Removed | Promoted):
            pool = self.pools[record.pool]
            if isinstance(record, Placed):
                pool.place(record.article, entry.number, entry.at)
            elif isinstance(record, Removed):
                pool.remove(record.article)
            else:
                _promote(pool, entry.number, entry.at, record)
                if record.feature_model is not None:
                    self.config = {**self.config, "feature_model": record.feature_model}
            pool.remember_edit(record.edit, edit_of(record))
        elif isinstance(record, Opened):
            self.pools[record.pool] = Pool(record.pool, start(record), self.dimension, entry.at)
            self.pools[record.pool].use_event_features(self.event)
        elif isinstance(record, Configured):
            self.config = record.config
            for pool in self.pools.values():
                pool.use_event_features(self.event)
        elif isinstance(record, Cut):
            self.cuts.update(record.nodes)
        elif isinstance(record, Excluded) and record not in self.exclusions:
            raise NotExcluded(record)

    @property
    def event(self) -> EventNumbers:
        """What contexts have of the event."""
        return EventNumbers.of(self.config)

    def fingerprint(self) -> str:
        """A hash of all that was learned and counted: equal for states that are equal to the bit.

        What models only cache for scoring is left out: it depends on which requests came.
        """
        return self.sketch().fingerprint()

    def sketch(self) -> StateSketch:
        """All that was learned and counted."""
        return StateSketch(self.number, dict(self.pools))


def _promote(pool: Pool, number: int, at: int, promoted: Promoted) -> None:
    """Give the pool its new policy, or the one before."""
    content = promoted.policy
    policy = pool.previous if content is None else policy_in(content)
    assert policy is not None  # checked before it was recorded
    change = PolicyChange(
        *(number, at, "reverted" if content is None else "promoted", summary(policy)),
        *("" if content is None else content_name(content), promoted.key, promoted.note),
    )
    pool.promote(policy, change, promoted.articles)
