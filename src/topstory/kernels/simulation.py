"""The simulated world's draws: counter-based, so that any part of them can be made by itself."""

import math

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Counters, Floats, Slots, compiled, inlined
from topstory.kernels.randomness import mix, stream, unit

WHEN = np.uint64(0x452821E638D01377)
WHO = np.uint64(0xBE5466CF34E90C6C)
WHICH = np.uint64(0xC0AC29B7C97C50DD)
CLICK = np.uint64(0x3F84D5B5B5470917)

Mixes = NDArray[np.float32]


@inlined
def chance(intercept: float, mixes: Mixes, user: int, appeal: Floats, article: int) -> float:
    """The probability of a click: logistic in c + π·v."""
    odds = intercept
    for group in range(mixes.shape[1]):
        odds += mixes[user, group] * appeal[article, group]
    return 1.0 / (1.0 + math.exp(-odds))


@inlined
def comer(root: np.uint64, users: int, loyalty: float) -> int:
    """Which user comes: ⌊users · u^loyalty⌋, so that some come often."""
    return min(int(users * unit(root, WHO) ** loyalty), users - 1)


@compiled
def visit(
    seed: np.uint64,
    first: int,
    total: int,
    loyalty: float,
    share: Floats,
    mixes: Mixes,
    hour: Slots,
    second: Slots,
    visitor: Slots,
) -> None:
    """When each visit comes and who comes; visits are in the order of time.

    Args:
        seed: of the log.
        first: number of the first visit to draw; as many as `hour` is long.
        total: visits in the whole log.
        loyalty: see `comer`.
        share: (H + 1,) the share of all visits that come before each hour.
        mixes: (V, groups), for its length alone.
        hour: out, the hour of each visit, counted from the start of the log.
        second: out, the second within the hour.
        visitor: out.
    """
    h = 0
    for i in range(len(hour)):
        root = stream(seed, first + i)
        place = (first + i + unit(root, WHEN)) / total
        while h < len(share) - 2 and place >= share[h + 1]:
            h += 1
        hour[i] = h
        second[i] = min(3599, int(3600.0 * (place - share[h]) / (share[h + 1] - share[h])))
        visitor[i] = comer(root, len(mixes), loyalty)


@compiled
def show(
    seed: np.uint64,
    first: int,
    hour: Slots,
    visitor: Slots,
    mixes: Mixes,
    offsets: Counters,
    members: Slots,
    intercept: Floats,
    appeal: Floats,
    position: NDArray[np.uint16],
    payoff: NDArray[np.float32],
) -> None:
    """Show each visitor an article of the hour's pool, uniformly at random, and draw the click.

    Args:
        seed: of the log.
        first: number of the first visit.
        hour: (n,) of each visit.
        visitor: (n,) of each visit.
        mixes: (V, groups) what users are.
        offsets: (H + 1,) where the pool of each hour begins in `members`.
        members: article indices of all pools, end to end.
        intercept: beside `members`, the log-odds of a click for a user of no group at all.
        appeal: (A, groups) what each group adds to them.
        position: out, the place of the shown article in its pool.
        payoff: out.
    """
    for i in range(len(hour)):
        root = stream(seed, first + i)
        begin = offsets[hour[i]]
        place = int(unit(root, WHICH) * (offsets[hour[i] + 1] - begin))
        at = begin + place
        position[i] = place
        clicked = click_draw(root, place) < chance(
            intercept[at], mixes, visitor[i], appeal, members[at]
        )
        payoff[i] = 1.0 if clicked else 0.0


@inlined
def click_draw(root: np.uint64, place: int) -> float:
    """The draw that decides a click on the article at `place`: one for each, shown or not."""
    return unit(mix(root + np.uint64(place)), CLICK)


@compiled
def draw_click(seed: np.uint64, event: int, place: int) -> float:
    """`click_draw` of one visit."""
    return click_draw(stream(seed, event), place)


@compiled
def habits(
    seed: np.uint64,
    first: int,
    mixes: Mixes,
    activity: Floats,
    rates: Floats,
    room: Floats,
    counts: Counters,
    codes: Slots,
) -> int:
    """Which behaviours users show: each with probability activity · Σ π_g rate_g, at most 0.95.

    Args:
        seed: of the population.
        first: the first user to draw; as many as `counts` is long.
        mixes: (V, groups) what users are.
        activity: (V,) how much of a user was recorded.
        rates: (groups, behaviours).
        room: (behaviours,) scratch.
        counts: (n,) out, how many each user shows.
        codes: out, which ones, user after user; long enough for all of them.

    Returns: the sum of `counts`.
    """
    low = np.uint64(0xFFFFFFFF)
    total = 0
    for i in range(len(counts)):
        user, before = first + i, total
        room[:] = 0.0
        for group in range(mixes.shape[1]):
            share = activity[user] * mixes[user, group] * 4294967296.0
            for b in range(len(room)):
                room[b] += share * rates[group, b]
        root = stream(seed, user)
        bits = np.uint64(0)
        for b in range(len(room)):
            bits = bits >> np.uint64(32) if b % 2 else mix(root + np.uint64(b))
            codes[total] = b  # stays only if counted
            total += float(bits & low) < min(room[b], 0.95 * 4294967296.0)
        counts[i] = total - before
    return total
