"""Replay by two versions in one interleaved run: `python -m benchmarks.replay_against PYTHON`.

PYTHON is the interpreter of an environment in which the other version is installed. Each version
replays the same log in a process of its own, in turn, and each pair of processor times is compared:
what disturbs the machine for longer than a pair disturbs both.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from os import getloadavg
from statistics import median

from rich.console import Console

from benchmarks import traffic
from benchmarks.measuring import say

# Runs in both versions, so it uses only what the oldest has.
_REPLAYER = """
import sys, time
import topstory as ts
log = ts.EventLog.read(sys.argv[1])
policy = ts.policy(sys.argv[2], alpha=0.2, seed=7)
for line in sys.stdin:
    began = time.process_time()
    result = ts.replay(policy, log)
    print(time.process_time() - began, result.learning.trials, result.learning.ctr, flush=True)
"""


def main() -> None:
    """Measure, and print a row for each policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python")
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--policies", nargs="+", default=["linucb-hybrid", "linucb-disjoint"])
    given = parser.parse_args()
    print_ = Console(highlight=False).print
    with tempfile.TemporaryDirectory() as folder:
        traffic.build(given.events).write(f"{folder}/log")
        for name in given.policies:
            pairs = _pairs((sys.executable, given.python), f"{folder}/log", name, given.pairs)
            ratios = sorted(ours / theirs for ours, theirs in pairs)
            ours, theirs = (median(each) for each in zip(*pairs, strict=True))
            print_(
                f"{name}: {ours:.3f} s of processor, the other {theirs:.3f}; ratio: median "
                f"{median(ratios):.3f}, quartiles {ratios[len(ratios) // 4]:.3f} to "
                f"{ratios[-1 - len(ratios) // 4]:.3f}, {given.pairs} pairs, load "
                f"{getloadavg()[0]:.1f}",
                soft_wrap=True,
            )


def _pairs(pythons: tuple[str, str], log: str, name: str, pairs: int) -> list[tuple[float, float]]:
    replayers = [
        subprocess.Popen(
            [python, "-c", _REPLAYER, log, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for python in pythons
    ]

    def timed(which: int) -> tuple[float, str]:
        process = replayers[which]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        seconds, _, result = process.stdout.readline().partition(" ")
        return float(seconds), result

    try:
        first = [timed(which)[1] for which in (0, 1)]  # compiles
        if first[0] != first[1]:
            raise SystemExit(f"{name}: the versions differ: {first[0]!r} and {first[1]!r}")
        taken = []
        for pair in range(pairs):
            say(f"{name}: {pair + 1} of {pairs}")
            order = (0, 1) if pair % 2 else (1, 0)
            found = {which: timed(which)[0] for which in order}
            taken.append((found[0], found[1]))
        return taken
    finally:
        for process in replayers:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
