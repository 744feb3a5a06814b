"""What a model counts that adapts its prior to what it sees: how many trials, and their payoffs.

A model without such a prior has an empty tally, and counts nothing.
"""

from typing import Any

from topstory.kernels.compilation import Floats, inlined, specialised

# Places in a tally; WEIGHT is that of the prior, κ.
UNTIL_CHECK, TRIALS, PAYOFF, SQUARES, WEIGHT = 0, 1, 2, 3, 4
LENGTH = 5


@inlined
def is_due(tally: Floats) -> bool:
    """Whether the prior is to be weighed anew before the next trial."""
    return bool(tally.shape[0] > 0 and tally[UNTIL_CHECK] <= 0.0)


@inlined
def count_trial(tally: Floats) -> None:
    """An article was shown."""
    if tally.shape[0] > 0:
        tally[UNTIL_CHECK] -= 1.0
        tally[TRIALS] += 1.0


@inlined
def count_payoff(tally: Floats, payoff: float) -> None:
    """A payoff came."""
    if tally.shape[0] > 0:
        tally[PAYOFF] += payoff
        tally[SQUARES] += payoff * payoff


def recount(state: Any, payoff: float, weight: float, scale: float) -> None:
    """Count a trial `weight` times that was counted once, with `scale` times its payoff."""
    raise NotImplementedError("called from kernels only")


@specialised(recount, inline=True)
def _recount(state: Any, payoff: Any, weight: Any, scale: Any) -> Any:
    if not hasattr(state.instance_class, "tally"):
        return lambda state, payoff, weight, scale: None

    def body(state: Any, payoff: Any, weight: Any, scale: Any) -> None:
        if state.tally.shape[0] > 0:
            state.tally[UNTIL_CHECK] -= weight - 1.0
            state.tally[TRIALS] += weight - 1.0
            state.tally[PAYOFF] += (weight - scale) * payoff

    return body
