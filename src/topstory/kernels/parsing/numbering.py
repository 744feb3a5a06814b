"""Keys of 128 bits, numbered in order of appearance: a hash table in arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Counters, Slots, compiled, inlined

Hashes = NDArray[np.uint64]

FREE = -1  # the number of a slot that no key has taken

_STEP, _ONE, _TWO = (
    np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_BY_30, _BY_27, _BY_31 = np.uint64(30), np.uint64(27), np.uint64(31)


@inlined
def mixed(value: Any) -> Any:
    """A number of 64 bits spread over all of them (splitmix64); no two give the same."""
    value = value + _STEP
    value = (value ^ (value >> _BY_30)) * _ONE
    value = (value ^ (value >> _BY_27)) * _TWO
    return value ^ (value >> _BY_31)


@compiled
def mix(first: Hashes, second: Hashes, values: Hashes) -> None:
    """Let a further value count in each of the keys."""
    for i in range(len(values)):
        first[i], second[i] = mixed(first[i] ^ values[i]), mixed(second[i] + values[i])


@inlined
def slot_of(first: Any, second: Any, ones: Hashes, twos: Hashes, numbers: Slots) -> Any:
    """Where a key is, or the free slot where it belongs. There are 2ⁿ slots, and one is free."""
    last = np.uint64(len(numbers) - 1)
    slot = first & last
    while numbers[slot] != FREE and (ones[slot] != first or twos[slot] != second):
        slot = (slot + np.uint64(1)) & last
    return slot


@compiled
def number_keys(
    first: Hashes,
    second: Hashes,
    ones: Hashes,
    twos: Hashes,
    numbers: Slots,
    count: int,
    found: Slots,
    fresh: Counters,
) -> int:
    """The number of each key; new ones are numbered from `count` on. How many there are now.

    `fresh`: the row of each new key. The table (`ones`, `twos`, `numbers`) must have room for all.
    """
    before = count
    for i in range(len(first)):
        slot = slot_of(first[i], second[i], ones, twos, numbers)
        if numbers[slot] == FREE:
            ones[slot], twos[slot], numbers[slot] = first[i], second[i], count
            fresh[count - before] = i
            count += 1
        found[i] = numbers[slot]
    return count


@compiled
def move_keys(
    ones: Hashes, twos: Hashes, numbers: Slots, to_ones: Hashes, to_twos: Hashes, to_numbers: Slots
) -> None:
    """Put the keys of a table into a larger one."""
    for old in range(len(numbers)):
        if numbers[old] != FREE:
            slot = slot_of(ones[old], twos[old], to_ones, to_twos, to_numbers)
            to_ones[slot], to_twos[slot] = ones[old], twos[old]
            to_numbers[slot] = numbers[old]
