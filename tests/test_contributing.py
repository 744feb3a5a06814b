"""CONTRIBUTING.md shows real diffs: each applies to this tree, and what it adds works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
WALK = re.compile(r"^### (?P<title>.+?)\n(?:(?!^##).)*?^```diff\n(?P<diff>.*?)^```$", re.M | re.S)
COMMAND = ("-m", "topstory.cli")
PRINT_OPENAPI = """
from topstory.serving.config.limits import LimitsConfig
from topstory.serving.http.openapi import openapi

print(openapi(("front",), 6, LimitsConfig())["paths"])
"""
# What a new entry may leave stale: the reference pages, and doctests that list a registry.
LISTS = (
    "tests/cli/test_reference.py",
    "tests/serving/config/test_config.py",
    "src/topstory/policies/registry.py",
    "src/topstory/evaluation/comparison.py",
    "src/topstory/events/formats/registry.py",
)
# A doctest is called after its module. `compare` is left out: its kernels take 4 s to compile.
NAMES_OF_LISTS = "up_to_date or (topstory. and not comparison.compare)"
POLICIES = (*LISTS, "tests/policies", "tests/evaluation/replays/test_replay_equals_the_paper.py")


class Walk(NamedTuple):
    """What a walk may touch at most, the tests of what it adds, and where users see its name."""

    files: int
    tests: tuple[str, ...]  # files and folders
    names: str  # of the tests to run there
    command: tuple[str, ...]  # for Python
    shows: str


WALKS = {
    "A model": Walk(
        5,
        (*POLICIES, "src/topstory/models/shrunken.py"),
        "shrunken or test_registry",
        (*COMMAND, "replay", "--help"),
        "--strength",
    ),
    "An explorer": Walk(
        4,
        (*POLICIES, "src/topstory/explorers/randomised_confidence.py"),
        "randucb or test_registry",
        (*COMMAND, "replay", "--help"),
        "--floor",
    ),
    "A log format": Walk(
        4,
        (
            *LISTS,
            "tests/events/formats/plain/test_tsv.py",
            "src/topstory/events/formats/plain/tsv.py",
        ),
        "test_tsv",
        (*COMMAND, "import", "--help"),
        "or tsv",
    ),
    "An endpoint": Walk(
        5,
        ("tests/serving/http/test_pools.py", "tests/serving/api"),
        "test_pools or (api and not test_an_endpoint_is)",
        ("-c", PRINT_OPENAPI),
        "'operationId': 'pools', 'summary': 'List the pools'",
    ),
}


def diffs() -> dict[str, str]:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return {match["title"]: match["diff"] for match in WALK.finditer(text)}


def run(tree: Path, *command: str) -> str:
    """Run a command on the copy; it must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "COLUMNS": "200"}
    environment.pop("NUMBA_CACHE_DIR", None)  # the copy's kernels have a cache of their own
    environment.pop("SLIPCOVER_ENABLED", None)  # and its coverage is not ours
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def apply(diff: str, tree: Path, *options: str) -> None:
    """Apply a diff to a tree. Line numbers may have moved; the lines themselves must be there."""
    command = ("git", "apply", "-C1", *options)
    done = subprocess.run(command, cwd=tree, input=diff, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_walk_is_tested() -> None:
    assert diffs().keys() == WALKS.keys()


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_touches_no_more_than_it_says_and_applies_alone(title: str) -> None:
    diff = diffs()[title]
    assert len(re.findall(r"^\+\+\+ ", diff, re.M)) <= WALKS[title].files
    apply(diff, ROOT, "--check")


def test_what_the_walks_add_works(tmp_path: Path) -> None:
    """All four in one copy of the tree: most of the time is for the linters and for compilers."""
    for name in ("src", "tests", "docs"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.nb[ic]")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for diff in diffs().values():
        apply(diff, tmp_path)
    run(tmp_path, sys.executable, "-m", "ruff", "check", "--no-cache", "src", "tests")
    run(tmp_path, sys.executable, "-m", "ruff", "format", "--no-cache", "--check", "src", "tests")
    commands = {walk.command for walk in WALKS.values()}
    printed = {each: run(tmp_path, sys.executable, *each) for each in commands}
    for walk in WALKS.values():
        assert walk.shows in " ".join(printed[walk.command].split())
    run(tmp_path, sys.executable, "-m", "docs.generate")
    tests = dict.fromkeys(test for walk in WALKS.values() for test in walk.tests)
    selected = " or ".join([*(walk.names for walk in WALKS.values()), NAMES_OF_LISTS])
    run(tmp_path, sys.executable, "-m", "pytest", "-q", *tests, "-k", selected)
