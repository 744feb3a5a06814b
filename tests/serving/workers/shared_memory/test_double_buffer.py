"""The mapped memory: a reader never sees half of what was written, and never waits."""

from __future__ import annotations

import subprocess
import sys
from time import monotonic

import numpy as np

from topstory.serving.workers.shared_memory.double_buffer import Reader, Writer

# Writes as fast as it can: a number, as often as that number says. So a mixture is seen.
HAMMER = """
import select, sys
import numpy as np
from topstory.serving.workers.shared_memory.double_buffer import Writer
writer = Writer()
print(*writer.descriptors, flush=True)
number = 0
while not select.select([sys.stdin], [], [], 0)[0]:  # until its end is closed
    number += 1
    count = 200 + number * 7919 % 3000  # longer than the first page now and then: it grows
    room = np.frombuffer(writer.begin(8 * (count + 1)), np.float64)
    room[0] = count
    room[1 : count + 1] = number
    writer.publish()
"""


READS = 10_000


def test_a_reader_never_sees_half_a_state() -> None:
    hammer = subprocess.Popen(
        [sys.executable, "-c", HAMMER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert hammer.stdout is not None
        descriptors = hammer.stdout.readline().split()
        # As inherited descriptors would be: the same memory, by the other process's names for it.
        files = [open(f"/proc/{hammer.pid}/fd/{number}", "r+b") for number in descriptors]  # noqa: SIM115  # closed below
        reader = Reader((files[0].fileno(), files[1].fileno(), files[2].fileno()))
        whole, last = 0, 0.0
        end = monotonic() + 60.0
        while whole < READS or last < READS:  # it is read, and overwritten, so often
            assert monotonic() < end, f"{whole} reads and {last} writes in a minute"
            turn, buffer = reader.latest()
            if not turn:
                continue
            seen = np.frombuffer(buffer, np.float64)
            count = int(seen[0])
            values = seen[1 : count + 1].copy()
            if reader.holds(turn):
                assert len(values) == count
                assert (values == turn).all()  # its own number, everywhere
                assert values[0] >= last
                whole, last = whole + 1, values[0]
        for file in files:
            file.close()
    finally:
        hammer.communicate()
    assert hammer.returncode == 0


def test_a_reader_that_was_overtaken_finds_out() -> None:
    writer = Writer()
    reader = Reader(writer.descriptors)
    for _ in range(2):
        writer.begin(8)
        writer.publish()
    turn, _ = reader.latest()
    writer.begin(8)
    writer.publish()  # into the other buffer: what is being read stays
    assert reader.holds(turn)
    writer.begin(8)  # and now this one is being written, though not yet shown
    assert not reader.holds(turn)


def test_a_buffer_that_has_grown_is_mapped_anew() -> None:
    writer = Writer()
    reader = Reader(writer.descriptors)
    lengths = []
    for length in (100, 100, 100_000, 100_000):
        writer.begin(length)[length - 1] = 7
        writer.publish()
        _, buffer = reader.latest()
        lengths.append(len(buffer))
        assert buffer[length - 1] == 7
    assert lengths[0] == lengths[1] < 100_000 <= lengths[2] == lengths[3]
