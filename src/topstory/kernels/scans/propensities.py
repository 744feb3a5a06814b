"""A multinomial logistic regression of what was shown: who is shown which article of a pool, when.

The score of an article is θ_aᵀx, and a number of its own for each block of time; a pool's chances
are the softmax of its scores.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Counters, Floats, Slots, compiled, inlined
from topstory.kernels.contexts import load, spread
from topstory.kernels.event_features import Context
from topstory.kernels.scans.targets import Positions


class Shows(NamedTuple):
    """What was shown of what, to whom and when."""

    contexts: Any
    pool: Slots  # (n,)
    position: Positions  # (n,)
    block: Slots  # (n,)
    offsets: Counters  # (P + 1,)
    members: Slots


class Scores(NamedTuple):
    """The coefficients, or their gradient."""

    by_user: Floats  # (articles, d) θ
    by_block: Floats  # (articles, blocks + 1); the last holds at all times


@inlined
def pool_chances(shows: Shows, t: int, scores: Scores, x: Floats, out: Floats) -> None:
    """The chance of every article of event t's pool, whose context is x."""
    first = shows.offsets[shows.pool[t]]
    always = scores.by_block.shape[1] - 1
    highest = -np.inf
    for j in range(out.shape[0]):
        a = shows.members[first + j]
        score = scores.by_block[a, shows.block[t]] + scores.by_block[a, always]
        for i in range(x.shape[0]):
            score += scores.by_user[a, i] * x[i]
        out[j] = score
        highest = max(highest, score)
    total = 0.0
    for j in range(out.shape[0]):
        out[j] = np.exp(out[j] - highest)
        total += out[j]
    for j in range(out.shape[0]):
        out[j] /= total


@compiled
def fit_shows(
    shows: Shows,
    which: NDArray[np.bool_],
    scores: Scores,
    room: Context,
    x: Floats,
    work: Floats,
    gradient: Scores,
) -> float:
    """−ln of the chance of all that was shown, of the events marked; adds its gradient."""
    always = scores.by_block.shape[1] - 1
    loss = 0.0
    for t in range(shows.pool.shape[0]):
        if not which[t]:
            continue
        first, last = shows.offsets[shows.pool[t]], shows.offsets[shows.pool[t] + 1]
        spread(load(shows.contexts, t, room), x)
        chances = work[: last - first]
        pool_chances(shows, t, scores, x, chances)
        place = shows.position[t]
        loss -= np.log(max(chances[place], 1e-300))
        for j in range(last - first):
            a = shows.members[first + j]
            error = chances[j] - (1.0 if j == place else 0.0)
            gradient.by_block[a, shows.block[t]] += error
            gradient.by_block[a, always] += error
            for i in range(x.shape[0]):
                gradient.by_user[a, i] += error * x[i]
    return loss


@compiled
def show_chances(
    shows: Shows,
    start: int,
    begins: Counters,
    which: NDArray[np.bool_],
    scores: Scores,
    room: Context,
    x: Floats,
    out: Floats,
) -> None:
    """The chances of the events start + i that `which` marks, from out[begins[i]] on."""
    for i in range(begins.shape[0]):
        if which[i]:
            t = start + i
            size = shows.offsets[shows.pool[t] + 1] - shows.offsets[shows.pool[t]]
            spread(load(shows.contexts, t, room), x)
            pool_chances(shows, t, scores, x, out[begins[i] : begins[i] + size])
