"""A decision as its client has it: signed when it is told, checked when its payoff comes."""

from __future__ import annotations

from topstory.serving.api.errors import Refused
from topstory.serving.api.messages import BUCKETS, Decision, FeedbackRequest
from topstory.serving.journal.records import Decided
from topstory.serving.journal.times import moment
from topstory.serving.security.decision_ids import Signer


def issued(signer: Signer, number: int, decided: Decided) -> Decision:
    """What the client is told."""
    return Decision(
        decision=signer.sign(number, decided.expires),
        article=decided.article,
        ranking=decided.ranking or (decided.article,),
        bucket=BUCKETS[decided.bucket],
        propensity=decided.propensity,
        expires=moment(decided.expires),
        model_version=decided.model_version,
    )


Ticket = tuple[int, int]  # what is signed: the decision's number, and when it expires


def redeemed(signer: Signer, given: FeedbackRequest, limit: float, now: int) -> Ticket:
    """Which decision it is, if its payoff can be taken; else it is refused."""
    if not -limit <= given.payoff <= limit:
        raise Refused(422, "bad_payoff", f"a payoff is a number from {-limit} to {limit}")
    number, expires = signer.check(given.decision)
    if now > expires:
        raise Refused(410, "expired_decision", "the window for this decision's feedback is over")
    return number, expires
