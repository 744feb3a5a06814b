"""A child ends with the process that started it, whatever it is doing, and however that ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
from tests.serving.processes import Served

from topstory.serving.child_process import SPARE_NICE

BUSY = """
import os, time
from pathlib import Path
def main():
    score = Path("/proc/self/oom_score_adj")
    print("begun", os.nice(0), score.exists() and score.read_text(), flush=True)
    time.sleep(600)  # as if it imported, or compiled, and looked at nothing else
"""
PARENT = """
import subprocess, time
from topstory.serving.child_process import command
print(subprocess.Popen(command("busy", spare=True)).pid, flush=True)
time.sleep(600)
"""


def test_a_busy_child_ends_with_its_parent(tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text(BUSY)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    begun, nice, score = parent.stdout.readline().split()
    assert (begun, int(nice)) == ("begun", min(19, os.nice(0) + SPARE_NICE))
    assert int(score) == 1000  # if memory runs out, the kernel ends it before the service
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert not psutil.wait_procs([child], timeout=10)[1]


def test_a_child_whose_parent_is_gone_does_not_begin() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    begin = f"from topstory.serving.child_process import begin; begin({gone.pid}, 'nothing')"
    assert subprocess.run([sys.executable, "-c", begin], check=False).returncode == 1


def test_workers_that_stand_still_end_with_their_learner(tmp_path: Path) -> None:
    served = Served(tmp_path, workers=2, policy={"name": "ucb"}).start()
    for worker in served.workers():
        worker.suspend()
    assert served.end(signal.SIGKILL) == -signal.SIGKILL
