"""The ledger: the journal, the state that it makes, and what is still pending."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from topstory.serving.api.errors import Unavailable
from topstory.serving.config.schema import Config
from topstory.serving.journal.group_commit import Commit, GroupCommit
from topstory.serving.journal.records import (
    Cut,
    Decided,
    Edit,
    Entry,
    Paid,
    Placed,
    Promoted,
    Removed,
)
from topstory.serving.service.sequencer.recent_decisions import PendingDecision, RecentDecisions
from topstory.serving.state.recovery.data_folder import DataFolder

_EDITS = (Placed, Removed, Promoted)


class Ledger:
    """Numbers records, commits them, and applies them to the state.

    A record is applied after its commit, in the journal's order: so the state is never ahead of
    the disk, and nothing has to be undone when a commit fails.
    """

    def __init__(self, config: Config, folder: DataFolder) -> None:
        self.state, self.journal = folder.state, folder.journal
        self.clock = folder.clock
        limits = config.limits
        self.commits = GroupCommit(self.journal, self._apply, self._drop, limits.waiting)
        self.recent = RecentDecisions(
            self.journal, limits.remembered, self.clock.now() + 1, limits.remembered_bytes
        )
        self.number = max(self.state.number, folder.last)  # the last one that was given
        self.edits: dict[str, Commit] = {}  # by pool: an edit on its way to the journal
        self.on_applied: Callable[[Sequence[Entry]], None] | None = None
        # By pool and article, where shows are limited: those on their way to the journal.
        self._showing: dict[tuple[str, str], int] = {}
        self.limiting: Commit | None = None  # the last commit of such, while it is on its way
        self._start, self._head_file = folder.start, folder.head_file

    # These number records and queue them; the records of one turn share a commit. They raise
    # Unavailable if there is no room for any.

    def decide(
        self, decided: Sequence[Decided], at: int, awaited: bool
    ) -> tuple[Sequence[Entry], Commit]:
        """Record decisions, as many as there is room for; `awaited`: whether a request waits."""
        entries: Sequence[Entry] = [
            Entry(number, at, each) for number, each in enumerate(decided, self.number + 1)
        ]
        if len(entries) > 1:
            entries = entries[: self.commits.room]
        commit = self.commits.append(entries, awaited)
        self.number += len(entries)
        if entries and self.state.pools[decided[0].pool].limited:
            for each in decided[: len(entries)]:
                key = (each.pool, each.article)
                self._showing[key] = self._showing.get(key, 0) + 1
            if self.limiting is not commit:
                self.limiting = commit
                commit.then(lambda _: self._limits_counted(commit))
        add = self.recent.add
        for entry, each in zip(entries, decided, strict=False):
            add(PendingDecision(entry.number, at, each, commit))
        return entries, commit

    def within_limits(self, decided: Sequence[Decided]) -> int:
        """How many of these, from the first on, show no article more often than it may be."""
        pool = self.state.pools[decided[0].pool]
        if not pool.limited:
            return len(decided)
        more: dict[str, int] = {}
        for place, each in enumerate(decided):
            found = pool.articles.get(each.article)
            limit = None if found is None or found.levers is None else found.levers.shows
            more[each.article] = more.get(each.article, 0) + 1
            if found is not None and limit is not None:
                on_their_way = self._showing.get((pool.name, each.article), 0)
                if found.shows + on_their_way + more[each.article] > limit:
                    return place
        return len(decided)

    def pay(
        self, decisions: Sequence[PendingDecision], payoffs: Sequence[Paid], at: int
    ) -> tuple[int, Commit]:
        """Record a payoff of each decision, of as many as there is room for: how many."""
        entries: Sequence[Entry] = [
            Entry(number, at, each) for number, each in enumerate(payoffs, self.number + 1)
        ]
        if len(entries) > 1:
            entries = entries[: self.commits.room]
        commit = self.commits.append(entries)
        self.number += len(entries)
        for pending, _ in zip(decisions, entries, strict=False):
            pending.paying = commit
        return len(entries), commit

    def edit(self, record: Edit, at: int) -> Commit:
        """Record an edit of a pool."""
        commit = self.commits.append((Entry(self.number + 1, at, record),))
        self.number += 1
        self.edits[record.pool] = commit
        return commit

    def cut(self, record: Cut, at: int) -> Commit:
        """Record how far a fleet's front ends were followed, with what was taken from them."""
        commit = self.commits.append((Entry(self.number + 1, at, record),))
        self.number += 1
        return commit

    def check_confirmed(
        self, number: int | None = None, request: str | None = None, pool: str | None = None
    ) -> None:
        """Raise Unavailable if this depends on a batch that may or may not have been committed.

        To go on now could record it twice. It may be a decision (by number) and its payoff, a
        client's request, or an edit of a pool, which later decisions and edits must see.
        """
        for entry in self.commits.unconfirmed:
            record = entry.record
            if isinstance(record, Paid):
                same = record.decision == number
            elif isinstance(record, _EDITS):
                same = record.pool == pool
            else:
                same = isinstance(record, Decided) and (
                    entry.number == number or (request is not None and record.request == request)
                )
            if same:
                self.commits.resolve()
                raise Unavailable("the previous commit for this is unconfirmed; try again")

    def close(self) -> None:
        """End the threads; drain the commits first."""
        self.commits.close()
        self.recent.lookups.close()

    # -- after a commit --

    def _apply(self, batch: Sequence[Entry]) -> None:
        """The batch is in the journal."""
        applied: list[tuple[Entry, Decided | None]] = []  # a payoff comes with its decision
        for entry in batch:
            record, decided = entry.record, None
            if isinstance(record, Decided):
                pending = self.recent.get(entry.number)
                if pending is not None:
                    pending.committing = None
                if self._showing:
                    self._shown(record)
            elif isinstance(record, Paid):
                pending = self.recent.get(record.decision) or self.recent.find(record.decision)
                assert pending is not None  # it was committed before it was paid
                pending.paying, pending.payoff = None, record.payoff
                decided = pending.decided
            elif isinstance(record, _EDITS):
                self.edits.pop(record.pool, None)
            applied.append((entry, decided))
        head = self.journal.head
        self.state.apply(applied, self._start)
        self.state.mark = head.mark
        self._head_file.write(head)
        if self.on_applied is not None:
            self.on_applied(batch)

    def _drop(self, batch: Sequence[Entry]) -> None:
        """The commit failed: nothing of the batch is in the journal."""
        for entry in batch:
            record = entry.record
            if isinstance(record, Decided):
                pending = self.recent.get(entry.number)
                if pending is not None:
                    pending.committing = None
                self.recent.forget(entry.number)
                self._shown(record)
            elif isinstance(record, Paid):
                pending = self.recent.get(record.decision)
                if pending is not None:
                    pending.paying = None
            elif isinstance(record, _EDITS):
                self.edits.pop(record.pool, None)

    def _limits_counted(self, commit: Commit) -> None:
        if self.limiting is commit:
            self.limiting = None

    def _shown(self, decided: Decided) -> None:
        """It is in the state by now, or lost."""
        key = (decided.pool, decided.article)
        left = self._showing.get(key, 0) - 1
        if left > 0:
            self._showing[key] = left
        else:
            self._showing.pop(key, None)


def not_written(failure: str) -> Unavailable:
    """The error after a commit that failed."""
    return Unavailable(f"the journal cannot be written: {failure}; nothing was changed")
