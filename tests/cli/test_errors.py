"""Every failure is one sentence on standard error, and says so in the exit status."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from tests.cli.running import run, words

from topstory import __version__
from topstory.cli.errors import reports_errors

COMMAND = [sys.executable, "-c", "from topstory.cli import main; main()"]


def failure(*arguments: object) -> str:
    result = run(*arguments, status=1)
    assert result.stdout == ""
    assert result.stderr.startswith("topstory: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.parametrize("command", [("inspect",), ("replay", "--policy", "ucb")])
def test_a_log_that_cannot_be_read(logs: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    assert "no such folder" in failure(*command, tmp_path / "nowhere")
    assert "not a topstory log" in failure(*command, tmp_path)
    damaged = tmp_path / "damaged"
    shutil.copytree(logs / "uniform", damaged)
    for file in (damaged / "events").iterdir():
        file.write_bytes(file.read_bytes()[:100])
    assert str(damaged) in failure(*command, damaged)


def test_a_log_without_events(logs: Path) -> None:
    assert "the log has no events" in failure("replay", logs / "empty", "--policy", "ucb")
    assert run("inspect", logs / "empty").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--policy", "ucb", "--alpha", "-1"], "alpha must be >= 0 (0 is greedy), got -1.0"),
        (["--policy", "egreedy", "--epsilon", "2"], "epsilon must be between 0"),
        (["--policy", "ucb", "--delta", "0"], "delta must be between 0 and 1"),
        (["--policy", "linucb-disjoint", "--ridge", "0"], "ridge must be from 1e-12 to 1e+12"),
        (["--policy", "ucb", "--size", "1.5"], "size must be between 0 and 1"),
        (["--policy", "ucb", "--seed", "-1"], "seed must be a whole number"),
    ],
)
def test_a_bad_value_gives_the_error_of_the_library(
    logs: Path, arguments: list[str], sentence: str
) -> None:
    assert sentence in failure("replay", logs / "uniform", *arguments)


def test_offsets_need_events_and_equal_contexts(logs: Path) -> None:
    warm = ("replay", logs / "uniform", "--policy", "ucb-warm", "--warm-from")
    assert "the log to fit them on has none" in failure(*warm, logs / "empty")
    assert "contexts of 3 features, and the log to replay 6" in failure(*warm, logs / "plain")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--policy", "ucb", "--epsilon", "0.1"], "for --epsilon: it does not apply to ucb"),
        (["--policy", "random", "--alpha", "0.1"], "for --alpha: it does not apply to random"),
        (
            ["--policy", "ucb,egreedy", "--shared-ridge", "1"],
            "for --shared-ridge: it does not apply to ucb, egreedy",
        ),
        (
            ["--policy", "ucb", "--alpha", "1", "--delta", "0.1"],
            "for --delta: give either --alpha or --delta",
        ),
        (["--policy", "ucb", "--warm-from", "other"], "for --warm-from: it does not apply to ucb"),
        (["--policy", "thompson"], "no policy is called 'thompson'"),
        (["--policy", ","], "give at least one policy"),
        (["--policy", "ucb", "--alpha", "much"], "--alpha"),
        (["--policy", "ucb", "--color", "red"], "--color"),
        ([], "--policy"),
    ],
)
def test_wrong_usage_exits_with_2(logs: Path, arguments: list[str], sentence: str) -> None:
    result = run("replay", logs / "uniform", *arguments, status=2)
    assert sentence in words(result.stderr)
    assert result.stdout == ""


def test_an_unknown_command_exits_with_2() -> None:
    run("replai", status=2)


def test_the_version() -> None:
    assert run("--version").stdout == f"topstory {__version__}\n"


def test_an_unexpected_error_is_one_sentence_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @reports_errors
    def broken() -> None:
        raise KeyError("surprise")

    for debug in ("", "1"):
        monkeypatch.setenv("TOPSTORY_DEBUG", debug)
        with pytest.raises(typer.Exit) as caught:
            broken()
        printed = capsys.readouterr().err
        assert caught.value.exit_code == 1
        assert "topstory: unexpected KeyError: 'surprise'" in printed
        assert ("Traceback" in printed) == bool(debug)


def test_ctrl_c_says_interrupted_and_exits_with_130() -> None:
    program = (
        "import time; import topstory.events.simulator as made; from topstory.cli import main; "
        "made.TodayModule = lambda *a, **k: print('busy', flush=True) or time.sleep(60); main()"
    )
    demo = subprocess.Popen(
        [sys.executable, "-c", program, "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert demo.stdout is not None
    assert demo.stdout.readline() == "busy\n"
    demo.send_signal(signal.SIGINT)
    stdout, stderr = demo.communicate(timeout=30)
    assert (demo.returncode, stdout, stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_closed_pipe_is_no_failure(logs: Path, json: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "inspect", str(logs / "uniform"), *json],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
