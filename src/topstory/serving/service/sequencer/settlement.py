"""Settles payoffs: each decision has one, recorded once, however often it is reported."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from topstory.serving.api.errors import ApiError
from topstory.serving.journal.group_commit import overloaded
from topstory.serving.journal.journal import Found, JournalError
from topstory.serving.journal.records import Paid
from topstory.serving.service.replies import attempt
from topstory.serving.service.sequencer.influence import Influence
from topstory.serving.service.sequencer.ledger import Ledger, not_written
from topstory.serving.service.sequencer.recent_decisions import PendingDecision
from topstory.serving.service.sequencer.remote_lookups import unreadable
from topstory.serving.service.transport import Payments, another_payoff, never_final


class Settlement:
    """Finds the decisions that payoffs are for, and records what is new."""

    def __init__(self, ledger: Ledger, influence: Influence) -> None:
        self._ledger, self._recent, self._influence = ledger, ledger.recent, influence

    def pay(self, payments: Payments) -> None:
        """Record payoffs, each once; those that come together share a commit."""
        ledger, get, at = self._ledger, self._recent.get, self._ledger.clock.now()
        simple: dict[int, PendingDecision] = {}  # by number
        places: list[int] = []  # of the simple ones
        others: list[int] = []
        unconfirmed = bool(ledger.commits.unconfirmed)
        for place, (number, expires) in enumerate(payments.receipts):
            pending = get(number)
            if (
                pending is None
                or pending.payoff is not None
                or pending.committing is not None
                or pending.paying is not None
                or pending.decided.expires != expires
                or unconfirmed
                or number in simple
            ):
                others.append(place)
            else:
                simple[number] = pending
                places.append(place)
        if places:
            try:
                self._record(list(simple.values()), payments, places, at)
            except ApiError as error:
                payments.denied(places, error)
        for place in others:
            one = _OnePayment(payments, place)
            attempt(one, self._pay_one, one)

    def _record(
        self,
        decisions: Sequence[PendingDecision],
        payments: Payments,
        places: Sequence[int],
        at: int,
    ) -> None:
        """Record payoffs of decisions that have none: as many as there is room for."""
        payoffs, keys, influence = payments.payoffs, payments.keys, self._influence
        capped = influence.caps_keys
        records = [
            Paid(
                *(each.number, payoffs[place], keys[place]),
                not capped or influence.counts_payoff(each.decided.pool, keys[place], at),
            )
            for each, place in zip(decisions, places, strict=True)
        ]
        recorded, commit = self._ledger.pay(decisions, records, at)
        commit.then(partial(_report_settled, payments, places[:recorded]))
        if recorded < len(places):
            payments.denied(places[recorded:], overloaded())

    def _pay_one(self, one: _OnePayment) -> None:
        """A payoff of a decision that is not in memory, is being committed, or has one."""
        number, expires = one.payments.receipts[one.place]
        self._ledger.check_confirmed(number)
        if self._recent.lookups.remote and self._recent.get(number) is None:
            self._recent.lookups.decision(number, partial(self._pay_found, one), one)
            return
        try:
            pending = self._recent.find(number)
        except JournalError as error:
            raise unreadable(error) from None
        self._pay(_expiring(pending, expires), one)

    def _pay_found(self, one: _OnePayment, found: Found | None) -> None:
        number, expires = one.payments.receipts[one.place]
        self._ledger.check_confirmed(number)
        self._pay(_expiring(self._recent.from_lookup(number, found), expires), one)

    def _pay(self, pending: PendingDecision, one: _OnePayment) -> None:
        payoff = one.payments.payoffs[one.place]
        committing = pending.committing or pending.paying
        if committing is not None:  # a copy, too, waits for the commit of the first
            committing.then(partial(self._pay_later, one, pending.committing is not None))
        elif pending.payoff is None:
            self._ledger.check_confirmed(pending.number)
            self._record((pending,), one.payments, (one.place,), self._ledger.clock.now())
        elif pending.payoff == payoff:
            one.payments.settled((one.place,), repeated=True)
        else:
            raise another_payoff(pending.payoff, payoff)

    def _pay_later(self, one: _OnePayment, undecided: bool, failure: str | None) -> None:
        """After the commit of the decision itself, or of an earlier payoff."""
        if undecided and failure is not None:
            one.refuse(not_written(failure))
        else:
            attempt(one, self._pay_one, one)


class _OnePayment(NamedTuple):
    """A place among payments."""

    payments: Payments
    place: int

    def refuse(self, refused: ApiError) -> None:
        """Answer with this error."""
        self.payments.denied((self.place,), refused)


def _report_settled(payments: Payments, places: Sequence[int], failure: str | None) -> None:
    if failure is None:
        payments.settled(places, repeated=False)
    else:
        payments.denied(places, not_written(failure))


def _expiring(pending: PendingDecision | None, expires: int) -> PendingDecision:
    # A number that was issued before its commit is given again, to another decision, if a crash
    # came in between; the time of expiry distinguishes them.
    if pending is None or pending.decided.expires != expires:
        raise never_final()
    return pending
