"""What a reader must know before using a value, in words."""

from __future__ import annotations

from collections.abc import Iterator

from topstory.evaluation.off_policy.value import Quantity

FEW_EVENTS = 200  # effective ones
LARGE_SHARE = 0.05
DOUBT = 0.02  # of the mean weight: smaller deviations from 1 change no conclusion


def cautions(
    estimator: str,
    mean_weight: Quantity,
    effective_events: float,
    largest_share: float,
    value: Quantity,
) -> Iterator[str]:
    """Sentences, the most serious first."""
    low, high = mean_weight.best_interval
    if effective_events == 0:
        yield "the log never shows what this policy would show: nothing can be said of its value"
        return
    if high < 1 - DOUBT:
        yield (
            f"the mean weight is {mean_weight.value:.3f}, not 1: the log never shows some of what "
            "this policy would show, and what that would earn is unknown, or its propensities are "
            "too large; `topstory inspect` says more"
        )
    if low > 1 + DOUBT:
        yield (
            f"the mean weight is {mean_weight.value:.3f}, not 1: the propensities are too small "
            "for what was shown, so the value is biased; `topstory inspect` says more"
        )
    if effective_events < FEW_EVENTS:
        yield (
            f"the log is worth {effective_events:,.0f} events for this policy: its value is hardly "
            "known"
        )
    if largest_share > LARGE_SHARE:
        yield (
            f"one event has {largest_share:.0%} of all weight: without it the value would be "
            "another"
        )
    if value.too_short:
        days = "more" if value.days_needed is None else f"{value.days_needed:,} days or more"
        yield (
            "rates change so slowly that this log says nothing of other days: its intervals are "
            f"for these days alone, and a log of {days} is needed"
        )
    if estimator in ("dr-shrunk", "switch"):
        yield "large weights were reduced, which adds a bias: the interval is that of dr"
    if estimator == "dm":
        yield "dm trusts its payoff model: the interval is that of dr, which corrects the model"


def estimated(lift: Quantity, robust_to: float | None) -> str:
    """What it means for a lift that propensities were estimated."""
    if robust_to is None:
        return "propensities were estimated, not recorded: the value is only as right as they are"
    side = "above" if lift.value > 0 else "below"
    return (
        f"propensities were estimated, not recorded: the lift is surely {side} 0 as long as the "
        f"true odds are within a factor {robust_to:.2f} of the estimated ones"
    )
