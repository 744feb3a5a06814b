"""Two versions of the service in one interleaved run: `python -m benchmarks.against PYTHON`.

PYTHON is the interpreter of an environment in which the other version is installed. Both are driven
by this version's driver, pair by pair, and the pairs are compared: what disturbs the machine for
longer than a pair disturbs both.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import mean, stdev

import numpy as np
from rich.console import Console
from scipy.stats import t as student

import topstory as ts
from benchmarks.measuring import say
from benchmarks.servers import Target, service
from benchmarks.serving import article_features, driven
from topstory.serving.api.messages import ArticleRequest

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
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in TASKS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ours, theirs = (
            _services(stack, folder / name, python)
            for name, python in (("ours", None), ("theirs", given.python))
        )
        for number in range(given.rounds):
            for name, (which, what) in TASKS.items():
                say(f"{number + 1} of {given.rounds}: {name}")
                pair = [ours[which], theirs[which]]
                if number % 2:  # who goes first alternates
                    pair.reverse()
                each = [driven(target, what, given.seconds) for target in pair]
                if number % 2:
                    each.reverse()
                rate, cpu = (math.log(each[0][key] / each[1][key]) for key in ("rate", "cpu"))
                found[name].append((rate, cpu))
    say("")
    console = Console(width=120)
    console.print("This version divided by the other: mean over the pairs, with 95 % intervals")
    for name, pairs in found.items():
        rates, cpus = np.array(pairs).T.tolist()
        console.print(f"  {name:24} requests/s {_ratio(rates)}   CPU a request {_ratio(cpus)}")


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
    with ts.Client(f"http://127.0.0.1:{crowded.port}", crowded.key) as client:
        for number, numbers in zip(range(20, 1_000), article_features(), strict=False):
            client.put_article("front", f"more-{number}", ArticleRequest(features=numbers))
    return found


def _ratio(logarithms: Sequence[float]) -> str:
    middle = mean(logarithms)
    if len(logarithms) < 2:
        return f"{math.exp(middle):.3f}"
    reach = float(student.ppf(0.975, len(logarithms) - 1))
    half = reach * stdev(logarithms) / math.sqrt(len(logarithms))
    low, high = math.exp(middle - half), math.exp(middle + half)
    return f"{math.exp(middle):.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
