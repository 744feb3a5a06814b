"""Rows that a front end has not handed in yet, and where their outcomes go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from topstory.serving.api.errors import ApiError, Unavailable
from topstory.serving.fleet.inbox import NewDecision, NewPayoff
from topstory.serving.journal.postgres.fleet_tables import COMING, CONFLICT, EARLIER, MADE
from topstory.serving.service.transport import (
    LocalProposal,
    Payments,
    another_payoff,
    never_final,
)


class WaitingDecision(NamedTuple):
    """A place of a proposal, on its way."""

    proposal: LocalProposal
    place: int
    row: NewDecision
    error: ApiError | None  # why there is nothing to show


class WaitingPayoff(NamedTuple):
    """A place among payments, on its way."""

    payments: Payments
    place: int
    row: NewPayoff


def report_payoffs(paid: list[WaitingPayoff], codes: Sequence[int]) -> None:
    """Report what became of payoffs."""
    for each, code in zip(paid, codes, strict=True):
        if code in (MADE, EARLIER):
            each.payments.settled((each.place,), repeated=code == EARLIER)
        else:
            error = another_payoff(None, each.row.payoff) if code == CONFLICT else never_final()
            if code == COMING:
                error = Unavailable("this decision has not been handed in yet; try again")
            each.payments.denied((each.place,), error)
