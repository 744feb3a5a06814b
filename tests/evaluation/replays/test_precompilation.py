"""What was compiled before is not compiled again; and another numba makes the same kernels."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.running import run as run_command
from tests.events.making import uniform_log

import topstory as ts

REPLAY = """
import sys
import numba
from numba.core import event
if "unknown numba" in sys.argv:
    numba.__version__ = "99.0.0"
import topstory as ts
from topstory.kernels import parts
assert ("pipeline_class" in parts.part_options()) != ("unknown numba" in sys.argv)
compiled = event.RecordingListener()
event.register("numba:compile", compiled)
result = ts.replay(ts.policy(sys.argv[1]), ts.EventLog.read(sys.argv[2]))
print(len(compiled.buffer), result.deployment.ctr.hex(), result.learning.ctr.hex())
"""


def run(cache: Path, *command: str) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    made = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=True
    )
    return made.stdout


def test_a_replay_compiles_nothing_that_was_compiled_before(tmp_path: Path) -> None:
    uniform_log(400, [["a", "b", "c"]], dimension=2).write(tmp_path / "log")
    cache = tmp_path / "cache"
    told = run(cache, "-m", "topstory.cli", "compile", "--policy", "ucb", "--dimension", "2")
    assert told.startswith("ucb: compiled in ")
    count, *_ = run(cache, "-c", REPLAY, "ucb", str(tmp_path / "log")).split()
    assert count == "0"


def test_a_version_of_numba_that_was_not_tried_gives_the_same_bits(tmp_path: Path) -> None:
    log = uniform_log(400, [["a", "b", "c"]], dimension=2)
    log.write(tmp_path / "log")
    result = ts.replay(ts.policy("ucb"), log)
    arguments = ("ucb", str(tmp_path / "log"), "unknown numba")
    count, *bits = run(tmp_path / "cache", "-c", REPLAY, *arguments).split()
    assert int(count) > 0
    assert bits == [result.deployment.ctr.hex(), result.learning.ctr.hex()]


def test_what_only_a_log_can_give_is_an_error_before_anything_is_compiled() -> None:
    made: list[str] = []
    with pytest.raises(ValueError, match=r"ucb-warm.* needs offset.* compiled by its first replay"):
        ts.compile_kernels(["random", "ucb-warm"], progress=lambda name, _: made.append(name))
    with pytest.raises(ValueError, match="dimension must be from 1 to 100, got 0"):
        ts.compile_kernels(dimension=0)
    assert not made


def test_an_unknown_policy_is_a_usage_error() -> None:
    answer = run_command("compile", "--policy", "nobody", status=2)
    assert "no policy is called 'nobody'" in " ".join(answer.output.split())
