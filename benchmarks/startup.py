"""How long the first answer takes: with nothing compiled, with everything cached, and --help."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

from benchmarks.measuring import Timing, interleaved, say
from benchmarks.tables import Section, Table

NAMES = ("ucb", "linucb-disjoint", "linucb-hybrid")
COMMAND = Path(sys.executable).parent / "topstory"

FIRST_REPLAY = """
import sys
import numpy as np
import topstory as ts
random = np.random.default_rng(0)
d = int(sys.argv[2])
users = np.append(random.random((1000, d - 1)), np.ones((1000, 1)), axis=1)
shown = random.choice(["a", "b", "c"], 1000)
articles = {key: random.random(d) for key in "abc"}
pool, payoff = np.zeros(1000, int), random.random(1000) < 0.1
log = ts.EventLog.from_arrays(users, [list("abc")], pool, shown, payoff, articles=articles)
ts.replay(ts.policy(sys.argv[1], alpha=0.2), log)
"""


def run(quick: bool) -> Section:
    """Whole processes, from start to exit."""
    repetitions = 3 if quick else 7
    names = NAMES[1:2] if quick else NAMES
    cold: dict[str, Timing] = {}
    other: dict[str, Timing] = {}
    with tempfile.TemporaryDirectory() as cache:
        warm: dict[str, Callable[[], object]] = {
            "import": partial(_python, cache, "import topstory")
        }
        _python(str(Path(cache, "other")), FIRST_REPLAY, "ucb", "6")  # keeps bytecode of all
        for name in names:
            # One cache for each: the policies share kernels, and each is to start with none.
            place = str(Path(cache, name))
            say(f"first replay of {name}, nothing compiled")
            began = perf_counter()
            _python(place, FIRST_REPLAY, name, "6")
            cold[name] = Timing((perf_counter() - began,))
            say(f"first replay of {name} with another number of features")
            began = perf_counter()
            _python(place, FIRST_REPLAY, name, "5")
            other[name] = Timing((perf_counter() - began,))
            warm[name] = partial(_python, place, FIRST_REPLAY, name, "6")
        if _has_command():
            warm["help"] = _help
        timings = interleaved(warm, repetitions)
    rows = [
        (
            f"first replay, `{name}`",
            f"{cold[name].median:.1f}",
            f"{other[name].median:.1f}",
            f"{timings[name].median:.2f}",
        )
        for name in names
    ]
    rows.append(("`import topstory`", "", "", f"{timings['import'].median:.2f}"))
    if "help" in timings:
        rows.append(("`topstory --help`", "", "", f"{timings['help'].median:.2f}"))
    table = Table(
        "A whole process, from start to exit: seconds",
        ("what", "nothing compiled", "compiled for another d", "compiled before"),
        rows,
    )
    figures = {f"{name}, cold": timing.figures(1000) for name, timing in cold.items()}
    figures |= {f"{name}, another d": timing.figures(1000) for name, timing in other.items()}
    figures |= {name: timing.figures(1000) for name, timing in timings.items()}
    notes = [] if "help" in timings else ["The command `topstory` did not answer --help."]
    return Section([table], figures, notes)


def _python(cache: str, program: str, *arguments: str) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's Python keeps bytecode
    command = [sys.executable, "-c", program, *arguments]
    subprocess.run(command, check=True, env=environment, capture_output=True)


def _has_command() -> bool:
    if not COMMAND.exists():
        return False
    return subprocess.run([COMMAND, "--help"], capture_output=True).returncode == 0


def _help() -> None:
    subprocess.run([COMMAND, "--help"], check=True, capture_output=True)
