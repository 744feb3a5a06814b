"""Two versions of the service in one interleaved run: `python -m benchmarks.against PYTHON`.

PYTHON is the interpreter of an environment in which the other version is installed. Both are driven
by this version's driver, in many short pairs, and each pair is compared: what disturbs the machine
for longer than a pair disturbs both. A server's CPU time is the scheduler's own count, in
nanoseconds. It is the figure to go by on a busy machine: requests/s are what other programs leave.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from operator import truediv
from pathlib import Path
from statistics import median

import httpx
from rich.console import Console
from scipy.stats import binom

from benchmarks.load import CONNECTIONS, requests_for
from benchmarks.load import drive as drive_port
from benchmarks.measuring import say
from benchmarks.servers import Target, service
from benchmarks.serving import article_features

Ratios = tuple[float, ...]  # of requests/s, and of CPU seconds for a request

TASKS = {
    "decide, durable": ("durable", "decide"),
    "decide, relaxed": ("relaxed", "decide"),
    "feedback": ("durable", "feedback"),
    "decide, 1,000 articles": ("crowded", "decide"),
}


def main() -> None:
    """Measure, and print a row for each task."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("python", help="the other version's interpreter")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=0.3, help="of one of a pair")
    given = parser.parse_args()
    found: dict[str, list[Ratios]] = {name: [] for name in TASKS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ours, theirs = (
            _services(stack, folder / name, python)
            for name, python in (("ours", None), ("theirs", given.python))
        )
        for number in range(-1, given.rounds):  # the first is to warm up
            for name, (which, what) in TASKS.items():
                say(f"{number + 1} of {given.rounds}: {name}")
                pair = [ours[which], theirs[which]]
                order = (1, 0) if number % 2 else (0, 1)  # who goes first alternates
                each = {place: driven(pair[place], what, given.seconds) for place in order}
                if number >= 0:
                    found[name].append(tuple(map(truediv, each[0], each[1])))
    say("")
    console = Console(width=120)
    console.print("This version divided by the other: median of the pairs, with 95 % intervals")
    for name, ratios in found.items():
        rates, cpus = zip(*ratios, strict=True)
        console.print(f"  {name:24} requests/s {middle(rates)}   CPU a request {middle(cpus)}")


def driven(target: Target, what: str, seconds: float) -> tuple[float, float]:
    """Requests a second, and the server's CPU seconds for one of them."""
    requests = requests_for(what, target.port, target.key, seconds)
    measured = drive_port(target.port, requests, seconds, CONNECTIONS, lambda: target.cpu)
    if measured["bad"]:
        raise RuntimeError(f"{measured['bad']} requests were refused")
    return measured["requests"] / measured["seconds"], measured["cpu"]


def _services(stack: ExitStack, folder: Path, python: str | None) -> dict[str, Target]:
    folder.mkdir()
    found = {
        name: service(stack, folder / name, decisions, python=python)
        for name, decisions in (
            ("durable", "durable"),
            ("relaxed", "relaxed"),
            ("crowded", "durable"),
        )
    }
    crowded = found["crowded"]
    url, headers = f"http://127.0.0.1:{crowded.port}", {"authorization": f"Bearer {crowded.key}"}
    with httpx.Client(base_url=url, headers=headers) as client:  # which every version understands
        for number, numbers in zip(range(20, 1_000), article_features(), strict=False):
            path = f"/v1/pools/front/articles/more-{number}"
            client.put(path, json={"features": numbers}, timeout=60).raise_for_status()
    return found


def middle(ratios: Sequence[float]) -> str:
    """The median, and the order statistics that enclose the true one with 95 %."""
    ordered = sorted(ratios)
    low = int(binom.ppf(0.025, len(ordered), 0.5)) - 1
    if low < 0:
        return f"{median(ordered):.3f}"
    return f"{median(ordered):.3f} [{ordered[low]:.3f}, {ordered[-1 - low]:.3f}]"


if __name__ == "__main__":
    main()
