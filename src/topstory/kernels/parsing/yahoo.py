"""Lines of Yahoo's Today Module logs, from bytes to columns.

A line is `time shown click |user FEATURES |article …|article …`. The articles repeat from line to
line, so they are compared with those of lines that were parsed before, and only the beginning
is parsed. A line that is not exactly as expected stops the scan: its caller parses it at leisure.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Counters, Slots, compiled, inlined
from topstory.kernels.parsing.text import (
    BAR,
    COLON,
    NEWLINE,
    RETURN,
    SPACE,
    ZERO,
    Bytes,
    decimal,
    same,
    whole,
)

# Of `state`, which a scan takes up and leaves.
PLACE, EVENT, LINE, SLOT, SIZE = 0, 1, 2, 3, 4

# Why a scan stopped.
ENDED, FULL, STRANGE = 0, 1, 2


@inlined
def known_pool(
    text: Bytes, at: int, end: int, parts: Bytes, lengths: Slots, slot: int
) -> tuple[int, int]:
    """(slot, place of the newline) of the articles that begin here; slot -1: not among the known.

    `slot` is tried first: it was the one of the line before.
    """
    for step in range(len(lengths)):
        tried = (slot + step) % len(lengths)
        length: Any = np.int64(lengths[tried])
        after = at + length
        if not length or after >= end:
            continue
        stop = after + 1 if text[after] == RETURN and after + 1 < end else after
        if text[stop] == NEWLINE and same(text, at, parts[tried], length):
            return tried, stop
    return -1, -1


@inlined
def place_of(
    text: Bytes, at: int, after: int, part: Bytes, starts: Slots, ends: Slots, members: int
) -> int:
    """Which of a pool's articles has the id text[at:after]; -1: none."""
    length = after - at
    for member in range(members):
        start = starts[member]
        if ends[member] - start != length:
            continue
        i = length - 1  # ids differ most in their last digits
        while i >= 0 and part[start + i] == text[at + i]:
            i -= 1
        if i < 0:
            return member
    return -1


@inlined
def heading(text: Bytes, at: int, end: int) -> tuple[int, int, int, int, int]:
    """(time, start and end of the shown id, click, place after `|user `); place -1: not so."""
    time, place = whole(text, at, end, 11)
    if place < 0 or place + 1 >= end or text[place] != SPACE:
        return 0, 0, 0, 0, -1
    start = place + 1
    stop = start
    while stop < end and text[stop] > SPACE and text[stop] != BAR:
        stop += 1
    if stop == start or stop + 10 > end or text[stop] != SPACE:
        return 0, 0, 0, 0, -1
    click: Any = np.int64(text[stop + 1]) - ZERO
    named = (
        text[stop + 2] == SPACE
        and text[stop + 3] == BAR
        and text[stop + 4] == 117
        and text[stop + 5] == 115
        and text[stop + 6] == 101
        and text[stop + 7] == 114
        and text[stop + 8] == SPACE
    )
    if (click != 0 and click != 1) or not named:
        return 0, 0, 0, 0, -1
    return time, start, stop, click, stop + 9


@inlined
def membership(text: Bytes, at: int, end: int, user: Any) -> int:
    """The place of the bar after `2:0.000012 … 6:0.999958 1:1.000000 `; -1: not so.

    Feature 1, the constant, goes last into `user`.
    """
    place, seen = at, 0
    size = len(user)
    while place + 1 < end and text[place] != BAR:
        feature: Any = np.int64(text[place]) - ZERO
        if feature < 1 or feature > size or text[place + 1] != COLON or seen & (1 << feature):
            return -1
        value, place = decimal(text, place + 2, end)
        if place < 0 or place >= end or text[place] != SPACE:
            return -1
        place += 1
        seen |= 1 << feature
        if feature > 1:
            user[feature - 2] = value
        elif value == 1.0:
            user[size - 1] = 1.0
        else:
            return -1
    if seen != (2 << size) - 2 or place >= end or text[place] != BAR:
        return -1
    return place


@compiled
def scan_r6a(
    text: Bytes,
    end: int,
    state: Counters,
    times: Counters,
    pool: Slots,
    position: Slots,
    payoff: NDArray[np.float32],
    users: NDArray[np.float32],
    parts: Bytes,
    lengths: Slots,
    numbers: Slots,
    members: Slots,
    starts: Slots,
    ends: Slots,
) -> int:
    """Read lines of version 1 (2009) from state[PLACE] on; why it stopped, with the state moved on.

    Known pools: `parts[s, :lengths[s]]` are the bytes of the articles of slot s, `numbers[s]` is
    its number, `members[s]` how many articles it lists, whose ids are `parts[s, starts[s, i] :
    ends[s, i]]`.
    """
    place, event, line, slot = state[PLACE], state[EVENT], state[LINE], state[SLOT]
    why = ENDED
    while place < end:
        if event == len(pool):
            why = FULL
            break
        time, start, stop, click, at = heading(text, place, end)
        if at < 0:
            why = STRANGE
            break
        at = membership(text, at, end, users[event])
        if at < 0:
            why = STRANGE
            break
        found, newline = known_pool(text, at, end, parts, lengths, slot)
        if found < 0:
            why = STRANGE
            break
        slot = found
        shown = place_of(text, start, stop, parts[slot], starts[slot], ends[slot], members[slot])
        if shown < 0:
            why = STRANGE
            break
        times[event], payoff[event] = time, click
        pool[event], position[event] = numbers[slot], shown
        event += 1
        line += 1
        place = newline + 1
    state[PLACE], state[EVENT], state[LINE], state[SLOT] = place, event, line, slot
    return why


@inlined
def indicators(
    text: Bytes, at: int, end: int, indices: Slots, first: int, d: int
) -> tuple[int, int]:
    """(place of the bar after `1 11 13 `, end of what was written from `first`); place -1: not so.

    Features count from 1, the constant, which becomes the last; the others shift down. Ascending.
    """
    place, last = at, first
    if place < end and text[place] == SPACE:  # some files have two spaces after `|user`
        place += 1
    while place < end and text[place] != BAR:
        feature, place = whole(text, place, end, 3)
        if place < 0 or place >= end or text[place] != SPACE or feature < 1 or feature > d:
            return -1, first
        place += 1
        index = feature - 2 if feature > 1 else d - 1
        i = last
        while i > first and indices[i - 1] > index:
            i -= 1
        if last - first == d or (i > first and indices[i - 1] == index):
            return -1, first
        for j in range(last, i, -1):
            indices[j] = indices[j - 1]
        indices[i] = index
        last += 1
    if place >= end or last == first or indices[last - 1] != d - 1:
        return -1, first
    return place, last


@compiled
def scan_r6b(
    text: Bytes,
    end: int,
    state: Counters,
    times: Counters,
    pool: Slots,
    position: Slots,
    payoff: NDArray[np.float32],
    indptr: Counters,
    indices: Slots,
    d: int,
    parts: Bytes,
    lengths: Slots,
    numbers: Slots,
    members: Slots,
    starts: Slots,
    ends: Slots,
) -> int:
    """The same for version 2 (2011), whose users are lists of the features that are on."""
    place, event, line, slot = state[PLACE], state[EVENT], state[LINE], state[SLOT]
    why = ENDED
    while place < end:
        if event == len(pool) or indptr[event] + d > len(indices):
            why = FULL
            break
        time, start, stop, click, at = heading(text, place, end)
        if at < 0:
            why = STRANGE
            break
        at, last = indicators(text, at, end, indices, indptr[event], d)
        if at < 0:
            why = STRANGE
            break
        found, newline = known_pool(text, at, end, parts, lengths, slot)
        if found < 0:
            why = STRANGE
            break
        slot = found
        shown = place_of(text, start, stop, parts[slot], starts[slot], ends[slot], members[slot])
        if shown < 0:
            why = STRANGE
            break
        times[event], payoff[event] = time, click
        pool[event], position[event] = numbers[slot], shown
        event += 1
        indptr[event] = last
        line += 1
        place = newline + 1
    state[PLACE], state[EVENT], state[LINE], state[SLOT] = place, event, line, slot
    return why
