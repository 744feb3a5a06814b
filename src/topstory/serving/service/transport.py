"""What joins a front end to the sequencer.

A front end hands over proposals and payments; the sequencer calls back with what became of them.
In one process the sequencer itself is the transport: `propose` and `pay` are plain calls. Where the
two are apart, a transport has an end on either side. The end at the front end scores a proposal at
once and sends the decisions; the end at the sequencer stands in for the proposal there. A new
transport implements these protocols; the front end and the sequencer stay as they are.

Edits take no transport: they are made beside the sequencer, and a front end in another process
forwards them there as HTTP requests (`workers.forwarding`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from topstory.serving.api.errors import ApiError
from topstory.serving.journal.records import Decided
from topstory.serving.service.inputs import Receipt
from topstory.serving.service.view import VisibleState

Wanted = tuple[str, bytes, tuple[str, ...], int]  # pool, user, exclude, slots


def is_same_request(wanted: Wanted, was: Decided, own_bytes: int) -> bool:
    """Whether a repeated request is for what was decided; `own_bytes`: of the user's own numbers.

    Of the ids to exclude, only those of articles were recorded.
    """
    pool, user, exclude, slots = wanted
    same = (pool, user[:own_bytes], slots) == (was.pool, was.user[:own_bytes], was.slots)
    return same and set(was.exclude) <= set(exclude)


def another_request(request: str) -> ApiError:
    """The error if a request's id was used for something else."""
    return ApiError(409, "request_conflict", f"request {request!r} was made for something else")


def another_payoff(was: float | None, payoff: float) -> ApiError:
    """The error if a decision has another payoff."""
    known = "another one" if was is None else was
    return ApiError(409, "payoff_conflict", f"this decision's payoff is {known}, not {payoff}")


def never_final() -> ApiError:
    """The error if a decision is not in the journal."""
    message = "this decision is not in the journal: it was never final"
    return ApiError(404, "unknown_decision", message)


class Proposal(Protocol):
    """Requests for decisions in one pool, all of one turn; `places` count them from 0.

    The sequencer answers repeated requests, and calls `decide` for the others. For each place it
    calls exactly one of `made`, `earlier`, `outdated` and `denied`.
    """

    @property
    def pool(self) -> str:
        """The pool to choose from."""
        ...

    @property
    def source(self) -> object:
        """The front end that waits: edits of the pool take turns with it."""
        ...

    @property
    def requests(self) -> Sequence[str | None]:
        """The clients' request ids, by place."""
        ...

    def is_current(self, at: int) -> bool:
        """Whether it saw the pool as it is at this time; if not, it is outdated."""
        ...

    def wanted(self, place: int) -> Wanted:
        """What the request is for: a repeated one must be for the same."""
        ...

    def decide(self, places: Sequence[int], first: int, at: int) -> Sequence[Decided]:
        """Score and choose, at this time; the decisions are numbered from `first`.

        Raises ApiError if there is nothing to show.
        """
        ...

    def made(self, places: Sequence[int], first: int, decided: Sequence[Decided]) -> None:
        """The decisions are made, and numbered from `first`."""
        ...

    def earlier(self, place: int, number: int, decided: Decided) -> None:
        """The same request had been decided before, like this."""
        ...

    def outdated(self, places: Sequence[int]) -> None:
        """The pool was edited meanwhile: propose again, from the pool as it is by now."""
        ...

    def denied(self, places: Sequence[int], error: ApiError) -> None:
        """These get an error."""
        ...


class Payments(Protocol):
    """One payoff, or several that were sent together.

    For each place the sequencer calls either `settled` or `denied`, once.
    """

    @property
    def receipts(self) -> Sequence[Receipt]:
        """Which decisions they are for."""
        ...

    @property
    def payoffs(self) -> Sequence[float]:
        """How much each of them paid."""
        ...

    @property
    def keys(self) -> Sequence[str]:
        """The names of the API keys that reported them."""
        ...

    def settled(self, places: Sequence[int], repeated: bool) -> None:
        """The payoffs are in the journal and in the model, or had been so before: `repeated`."""
        ...

    def denied(self, places: Sequence[int], error: ApiError) -> None:
        """These get an error."""
        ...


class LocalProposal(Proposal, Protocol):
    """A proposal where it is made: a transport may have it scored before it is sent."""

    def decide(
        self,
        places: Sequence[int],
        first: int,
        at: int,
        state: VisibleState | None = None,
        drawn: bool = False,
    ) -> Sequence[Decided]:
        """As above, from this state if one is given.

        `drawn`: these are not the decisions' own numbers, so records keep them.
        """
        ...


class Transport(Protocol):
    """Takes what a front end has to the sequencer; the outcomes come back by calls."""

    def propose(self, proposal: LocalProposal, /) -> None:
        """Have decisions made."""
        ...

    def pay(self, payments: Payments, /) -> None:
        """Have payoffs recorded."""
        ...
