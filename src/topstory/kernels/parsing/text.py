"""Numbers out of bytes, and bytes compared with bytes."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import inlined

Bytes: TypeAlias = NDArray[np.uint8]

SPACE, MINUS, POINT, ZERO, COLON, BAR = 32, 45, 46, 48, 58, 124
RETURN, NEWLINE = 13, 10
STRIDE = 64

DIGITS = 15  # of a number: as many as a double holds exactly
POWERS = np.array([10.0**i for i in range(23)])  # exact, as is one division by one of them


@inlined
def same(one: Bytes, at: int, other: Bytes, length: int) -> bool:
    """Whether one[at : at + length] == other[:length]."""
    done = 0
    while done + STRIDE <= length:
        # No early way out, and indices that cannot be negative: the compiler takes 16 at a time.
        here, there = np.uint64(at + done), np.uint64(done)
        difference = np.uint8(0)
        for i in range(np.uint64(STRIDE)):
            difference |= one[here + i] ^ other[there + i]
        if difference:
            return False
        done += STRIDE
    while done < length:
        if one[at + done] != other[done]:
            return False
        done += 1
    return True


@inlined
def whole(text: Bytes, at: int, end: int, most: int) -> tuple[int, int]:
    """(value, place after it) of a whole number of 1 to `most` digits; place -1: there is none."""
    value, place = 0, at
    while place < end and place - at <= most:
        digit: Any = np.int64(text[place]) - ZERO
        if digit < 0 or digit > 9:
            break
        value = value * 10 + digit
        place += 1
    if place == at or place - at > most:
        return 0, -1
    return value, place


@inlined
def decimal(text: Bytes, at: int, end: int) -> tuple[float, int]:
    """(value, place after it) of a number like -0.306008, correctly rounded; place -1: none."""
    place, negative = at, False
    if place < end and text[place] == MINUS:
        negative = True
        place += 1
    value, digits, decimals, pointed = 0, 0, 0, False
    while place < end:
        digit: Any = np.int64(text[place]) - ZERO
        if digit < 0 or digit > 9:
            if text[place] != POINT or pointed:
                break
            pointed = True
        else:
            value = value * 10 + digit
            digits += 1
            decimals += pointed
            if digits > DIGITS:
                return 0.0, -1
        place += 1
    if not digits:
        return 0.0, -1
    number = value / POWERS[decimals]
    return (-number if negative else number), place
