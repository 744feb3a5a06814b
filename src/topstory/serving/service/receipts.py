"""A decision's id as its client holds it: signed when issued, checked when the payoff comes."""

from __future__ import annotations

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import BUCKETS, Decision, FeedbackRequest
from topstory.serving.journal.clock import as_datetime
from topstory.serving.journal.records import Decided
from topstory.serving.security.decision_ids import Signer
from topstory.serving.service.inputs import OutOfRange

Receipt = tuple[int, int]  # what is signed: the decision's number, and when it expires


def issued(signer: Signer, number: int, decided: Decided) -> Decision:
    """The answer that the client gets."""
    return Decision(
        decision=signer.sign(number, decided.expires),
        article=decided.article,
        ranking=decided.ranking or (decided.article,),
        bucket=BUCKETS[decided.bucket],
        propensity=decided.propensity,
        expires=as_datetime(decided.expires),
        model_version=decided.model_version,
    )


def redeemed(
    signer: Signer, feedback: FeedbackRequest, payoffs: tuple[float, float], now: int
) -> Receipt:
    """Which decision the feedback is for; ApiError if its payoff cannot be taken."""
    low, high = payoffs
    if not low <= feedback.payoff <= high:
        raise OutOfRange(
            *("bad_payoff", f"a payoff is a number from {low:g} to {high:g} here, got "),
            f"{feedback.payoff:g}: `limits.payoffs` sets the range",
        )
    number, expires = signer.check(feedback.decision)
    if now > expires:
        raise ApiError(410, "expired_decision", "the window for this decision's feedback is over")
    return number, expires
