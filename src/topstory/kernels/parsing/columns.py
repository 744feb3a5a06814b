"""Columns of text: numbers, times and hashes of all their values in one pass.

A value is `text[offsets[i] : offsets[i + 1]]`, as Arrow keeps them. What is not plainly a number or
a time is left to others, who know more forms of both.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Counters, Floats, Slots, compiled, inlined
from topstory.kernels.parsing.numbering import mixed
from topstory.kernels.parsing.text import COLON, MINUS, POINT, SPACE, Bytes, decimal, whole

Mask = NDArray[np.bool_]
Hashes = NDArray[np.uint64]

TAB, UPPER_T, UPPER_Z = 9, 84, 90
SECOND, DAY = 1_000_000, 86_400  # microseconds, seconds
FRACTION = 6  # digits of a second that are kept
DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334])
DAYS_IN = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
BYTE, WORD = np.uint64(8), 8


@compiled
def read_numbers(text: Bytes, offsets: Slots, values: Floats, read: Mask) -> None:
    """The values that are decimal numbers, with blanks around them or not; `read`: which are."""
    for i in range(len(read)):
        at: Any = np.int64(offsets[i])
        end: Any = np.int64(offsets[i + 1])
        while at < end and (text[at] == SPACE or text[at] == TAB):
            at += 1
        while end > at and (text[end - 1] == SPACE or text[end - 1] == TAB):
            end -= 1
        value, place = decimal(text, at, end)
        read[i] = place == end
        if read[i]:
            values[i] = value


@inlined
def two_digits(text: Bytes, at: int, before: int, most: int) -> int:
    """The number after the sign `before`, of exactly two digits; -1: not so, or above `most`."""
    if text[at] != before:
        return -1
    value, place = whole(text, at + 1, at + 3, 2)
    return value if place == at + 3 and value <= most else -1


@inlined
def days_since_1970(year: int, month: int, day: int) -> int:
    """Of a date of the Gregorian calendar; a day that its month does not have: -1 << 40."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > DAYS_IN[month - 1] + (leap and month == 2):
        return -1 << 40
    before = year - 1
    days: int = before * 365 + before // 4 - before // 100 + before // 400 - 719_162
    days += DAYS_BEFORE[month - 1] + (leap and month > 2) + day - 1
    return days


@compiled
def read_times(text: Bytes, offsets: Slots, micros: Counters, read: Mask) -> None:
    """The values such as 2026-03-01 10:00:00.5, with T and Z or not; the time zone is UTC."""
    for i in range(len(read)):
        at: Any = np.int64(offsets[i])
        end: Any = np.int64(offsets[i + 1])
        read[i] = False
        if end - at < 19:
            continue
        year, place = whole(text, at, at + 4, 4)
        month = two_digits(text, at + 4, MINUS, 12)
        day = two_digits(text, at + 7, MINUS, 31)
        hour = max(two_digits(text, at + 10, SPACE, 23), two_digits(text, at + 10, UPPER_T, 23))
        minute = two_digits(text, at + 13, COLON, 59)
        second = two_digits(text, at + 16, COLON, 59)
        if place != at + 4 or year < 1 or month < 1 or day < 1 or min(hour, minute, second) < 0:
            continue
        days = days_since_1970(year, month, day)
        place, fraction = at + 19, 0
        if place < end and text[place] == POINT:
            fraction, after = whole(text, place + 1, end, FRACTION)
            if after < 0:
                continue
            for _ in range(FRACTION - (after - place - 1)):
                fraction *= 10
            place = after
        if place < end and text[place] == UPPER_Z:
            place += 1
        if place == end and days > -1 << 40:
            seconds: Any = days * DAY + hour * 3600 + minute * 60 + second
            micros[i] = seconds * SECOND + fraction
            read[i] = True


@compiled
def hash_texts(text: Bytes, offsets: Slots, first: Hashes, second: Hashes) -> None:
    """Two hashes of each value; the arrays hold the keys that they start from."""
    for i in range(len(first)):
        at, end = np.int64(offsets[i]), np.int64(offsets[i + 1])
        one, two = mixed(first[i] ^ np.uint64(end - at)), mixed(second[i] + np.uint64(end - at))
        while at < end:
            word = np.uint64(0)
            for place in range(at, min(at + WORD, end)):
                word = (word << BYTE) | np.uint64(text[place])
            one, two = mixed(one ^ word), mixed(two + word)
            at += WORD
        first[i], second[i] = one, two
