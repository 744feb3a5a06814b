"""What lasts: the journal, the state that it makes, and what is remembered of recent decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from topstory.serving.api.errors import Refused, Unavailable
from topstory.serving.config.schema import Config
from topstory.serving.journal.clock import SECOND, Clock
from topstory.serving.journal.group_commit import Commit, Commits
from topstory.serving.journal.journal import Found, JournalError
from topstory.serving.journal.records import AnyRecord, Decided, Entry, Paid, Placed, Removed
from topstory.serving.service.edit_turns import Turns
from topstory.serving.service.receipts import Ticket
from topstory.serving.service.recent_decisions import Memory, Remembered, recalled
from topstory.serving.service.remote_lookups import unreadable
from topstory.serving.service.replies import Reply
from topstory.serving.state.recovery import Opening

Wanted = tuple[str, bytes, tuple[str, ...], int]  # pool, user, exclude, slots


class Ledger:
    """Takes records in, one after the other.

    A record is applied to the state after its commit, in the journal's order: so the state is
    never ahead of the disk, and nothing has to be taken back when a commit fails.
    """

    def __init__(self, config: Config, opening: Opening) -> None:
        self.config = config
        self.state, self.journal = opening.state, opening.journal
        self.clock = Clock(after=self.state.at)
        limits = config.limits
        self.commits = Commits(self.journal, self._applied, self._lost, limits.waiting)
        self.memory = Memory(self.journal, limits.remembered, self.clock.now() + 1)
        self.looks = self.memory.looks
        self.durable = config.journal.decisions == "durable"
        self.followed: Callable[[Sequence[Entry]], None] | None = None  # told what was applied
        self._window = int(config.window_seconds * SECOND)
        self._number = max(self.state.number, opening.last)
        self._edits: dict[str, Commit] = {}  # by pool
        self.turns = Turns()
        self._start = opening.start

    # -- decisions --

    def take(self, decided: Sequence[Decided], at: int) -> list[Remembered]:
        """Make decisions: they have numbers that follow each other, and one commit.

        As many as there is room for in the journal's queue; refused if there is none.
        """
        commit = self.commits.gathering()
        entries = [
            Entry(number, at, each)
            for number, each in enumerate(decided[: self.commits.room], self._number + 1)
        ]
        self._append(entries, self.durable)
        return [
            self.memory.add(entry, each, commit)
            for entry, each in zip(entries, decided, strict=False)
        ]

    def made_before(
        self, request: str, wanted: Wanted, at: int, looked: int = 0
    ) -> Remembered | None:
        """The decision that was made for a client's request, if it asked for the same."""
        self.certain(request=request)
        try:
            made = self.memory.find_request(request, at - self._window, looked)
        except JournalError as error:
            raise unreadable(error) from None
        return None if made is None else _as_wanted(made, request, wanted)

    def far(self, request: str | None, at: int, looked: int) -> bool:
        """Whether only a look into a far journal tells if a request was made before.

        At the time `looked` it had none, nor had memory; what came since then may be in memory.
        """
        if request is None or not self.looks.far:
            return False
        return not self.memory.certain(request, max(looked, at - self._window))

    def look_for(
        self,
        request: str,
        wanted: Wanted,
        at: int,
        reply: Reply[Any],
        then: Callable[[Remembered | None], None],
    ) -> None:
        """As `made_before`, from a far journal; who is told of none asks again, having `looked`."""
        self.certain(request=request)

        def told(found: Found | None) -> None:
            then(None if found is None else _as_wanted(recalled(found), request, wanted))

        self.looks.request(request, at - self._window, told, reply)

    def known(self, ticket: Ticket) -> Remembered:
        """The decision that a client has; else it is refused."""
        number, expires = ticket
        self.certain(number)
        try:
            return _final(self.memory.find(number), expires)
        except JournalError as error:
            raise unreadable(error) from None

    def look_up(
        self, ticket: Ticket, reply: Reply[Any], then: Callable[[Remembered], None]
    ) -> None:
        """As `known`, from a far journal."""
        number, expires = ticket
        self.certain(number)

        def told(found: Found | None) -> None:
            self.certain(number)
            then(_final(self.memory.found(number, found), expires))

        self.looks.decision(number, told, reply)

    def certain(
        self, number: int | None = None, request: str | None = None, pool: str | None = None
    ) -> None:
        """Refuse what hangs on a commit in doubt: nobody knows yet whether it would be the second.

        Of a decision, by its number, its payoff too; of a client's request; or an edit of a pool,
        for what is decided or edited after it must see it.
        """
        for entry in self.commits.doubtful:
            record = entry.record
            if isinstance(record, Paid):
                same = record.decision == number
            elif isinstance(record, Placed | Removed):
                same = record.pool == pool
            else:
                same = isinstance(record, Decided) and (
                    entry.number == number or (request is not None and record.request == request)
                )
            if same:
                self.commits.settle()
                raise Unavailable("the commit of this is in doubt: try again")

    # -- payoffs --

    def pay_new(
        self, tickets: Sequence[Ticket], payoffs: Sequence[float]
    ) -> tuple[list[int], Commit | None]:
        """Take in together what decisions paid, where that is plain: each is known and unpaid.

        The places of those that are on their way to the journal, and their commit. The others are
        left as they are: repeated, unknown, not in memory, being committed, or too many.
        """
        room = self.commits.room
        if not room or self.commits.doubtful:
            return [], None
        commit, at = self.commits.gathering(), self.clock.now()
        places, entries = [], []
        number = self._number
        for place, (decision, expires) in enumerate(tickets[:room]):
            made = self.memory.get(decision)
            if made is not None and made.unpaid and made.decided.expires == expires:
                made.paying = commit  # at once: its twin may be the next one
                number += 1
                entries.append(Entry(number, at, Paid(decision, payoffs[place])))
                places.append(place)
        if not entries:
            return [], None
        return places, self._append(entries, awaited=True)

    # -- edits --

    def editing(self, pool: str) -> Commit | None:
        """The edit of this pool that is on its way."""
        return self._edits.get(pool)

    async def settled(self, pool: str) -> None:
        """Wait for the edit that is on its way, and for visitors whom it held up.

        Refused if nobody knows what became of the last one.
        """
        while pool in self._edits or pool in self.turns.held():
            if pool in self._edits:
                await self._edits[pool]
            await self.turns.wait(pool)
        self.certain(pool=pool)

    # -- the journal --

    def append(self, record: AnyRecord, at: int, awaited: bool = True) -> tuple[Entry, Commit]:
        """Give a record its number, and send it on its way to the journal."""
        entry = Entry(self._number + 1, at, record)
        return entry, self._append([entry], awaited)

    def _append(self, entries: Sequence[Entry], awaited: bool) -> Commit:
        commit = self.commits.append(entries, awaited)
        self._number = entries[-1].number
        return commit

    def _applied(self, batch: Sequence[Entry]) -> None:
        self.state.apply([(entry, self._noted(entry)) for entry in batch], self._start)
        if self.followed is not None:
            self.followed(batch)

    def _noted(self, entry: Entry) -> Decided | None:
        """It is in the journal; the decision that it pays for."""
        self._over(entry)
        record = entry.record
        if not isinstance(record, Paid):
            return None
        made = self.memory.find(record.decision)
        assert made is not None  # it was committed before it was paid
        made.payoff = record.payoff
        return made.decided

    def _lost(self, batch: Sequence[Entry]) -> None:
        for entry in batch:
            self._over(entry)
            if isinstance(entry.record, Decided):
                self.memory.forget(entry.number)

    def _over(self, entry: Entry) -> None:
        """What waits for the record's commit need not wait any more."""
        record = entry.record
        if isinstance(record, Decided):
            made = self.memory.get(entry.number)
            if made is not None:
                made.committing = None
        elif isinstance(record, Paid):
            made = self.memory.get(record.decision)
            if made is not None:
                made.paying = None
        elif isinstance(record, Placed | Removed):
            self._edits.pop(record.pool, None)


def _as_wanted(made: Remembered, request: str, wanted: Wanted) -> Remembered:
    was = made.decided
    if wanted != (was.pool, was.user, was.exclude, was.slots):
        raise Refused(409, "request_conflict", f"request {request!r} was made for something else")
    return made


def _final(made: Remembered | None, expires: int) -> Remembered:
    # A number that was told before its commit is given again, to another decision, if a crash
    # came between; the time tells them apart.
    if made is None or made.decided.expires != expires:
        raise Refused(
            404, "unknown_decision", "this decision is not in the journal: it was never final"
        )
    return made


def not_written(failure: str) -> Unavailable:
    """A commit failed."""
    return Unavailable(f"the journal cannot be written: {failure}; nothing was changed")
