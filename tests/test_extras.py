"""The core works without extras, and a missing extra is one sentence with the remedy."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from topstory.extras import EXTRAS, MissingExtra

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

# Every finder of modules, except that it does not find some.
BLOCK = """
import sys

class Finder:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *arguments):
        return None if name in {absent} else self.finder.find_spec(name, *arguments)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Finder, sys.meta_path)
"""
RUN_COMMANDS = """
import json, sys
from typer.testing import CliRunner
from topstory.cli.app import app

done = [CliRunner().invoke(app, command) for command in json.loads(sys.argv[1])]
print(json.dumps([[each.exit_code, each.stdout, each.stderr] for each in done]))
"""
IMPORT_NAMES = """
import json
import topstory as ts

refused = {}
for name in ts.__all__:
    try:
        getattr(ts, name)
    except ImportError as error:
        refused[name] = str(error)
print(json.dumps(refused))
"""


class Outcome(NamedTuple):
    """How a command ended, and what it printed."""

    status: int
    stdout: str
    stderr: str


def core_distributions() -> set[str]:
    """The names of all that `pip install topstory` installs."""
    found: set[str] = set()
    waiting: list[str] = list(PROJECT["dependencies"])
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        try:
            waiting += requires(name) or ()
        except PackageNotFoundError:
            pytest.fail(f"the core needs {name}, which is not installed here")
    return found


@cache
def all_but_the_core() -> frozenset[str]:
    """Every importable name here that `pip install topstory` would not have installed."""
    core = core_distributions() | {"topstory"}
    return frozenset(
        name
        for name, owners in packages_distributions().items()
        if not core & {canonicalize_name(owner) for owner in owners}
    )


def python(folder: Path, absent: Iterable[str], *arguments: str) -> Any:
    """What a program prints as JSON, where some modules cannot be found."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    # Python runs this file first, in the processes that the program starts as well.
    (site / "sitecustomize.py").write_text(BLOCK.format(absent=frozenset(absent)))
    path = os.pathsep.join([str(site), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout)


def commands(folder: Path, absent: Iterable[str], *lines: str) -> list[Outcome]:
    """How each command ended; all of them run in one process, which saves a second for each."""
    split = [line.split() for line in lines]
    given = msgspec.json.encode(split).decode()
    return [Outcome(*each) for each in python(folder, absent, RUN_COMMANDS, given)]


def sentence(extra: str) -> str:
    return str(MissingExtra(extra, ""))


def check_refused(outcomes: Sequence[Outcome], extras: Sequence[str]) -> None:
    expected = [Outcome(1, "", f"topstory: {sentence(extra)}\n") for extra in extras]
    assert outcomes == expected


def test_the_core_alone_has_every_public_name_or_says_which_extra_it_needs(tmp_path: Path) -> None:
    assert python(tmp_path, all_but_the_core(), IMPORT_NAMES) == {
        "AsyncClient": sentence("client"),
        "Client": sentence("client"),
        "FeatureBuilder": sentence("features"),
    }


def test_the_core_alone_simulates_imports_replays_and_tunes(tmp_path: Path) -> None:
    outcomes = commands(
        tmp_path,
        all_but_the_core(),
        "--help",
        "--version",
        "simulate log --events 3000 --users 500",
        "simulate log.gz --format r6a --events 500 --users 500",
        "import r6a log.gz imported",
        "export log log.jsonl --to jsonl",
        "import jsonl log.jsonl mapped -o shown=shown -o payoff=payoff -o candidates=pool",
        "inspect log",
        "replay log --policy ucb,linucb-hybrid",
        "tune log --policy egreedy --grid 0.1,0.2",
        "serve --check-config",
        "new-key web",
    )
    assert [outcome.status for outcome in outcomes] == [0] * len(outcomes), outcomes


def test_a_command_without_its_extra_is_one_sentence(tmp_path: Path) -> None:
    made, *refused = commands(
        tmp_path,
        all_but_the_core(),
        "simulate log --events 1000 --users 500",
        "serve --port 0 --data data",
        "serve --port 0 --data data --workers 2",
        "export-journal postgresql://nowhere/ out",
        "study out",
        "demo",
        "features fit log model.safetensors",
        "features apply log model.safetensors out",
        "features show model.safetensors",
        "features show model.safetensors --picture memberships.svg",
        "replay log --policy ucb-warm",
        "tune log --policy egreedy-warm",
        "tune log --policy ucb --engine ray",
        "import csv log/log.json out -o shown=a -o payoff=b -o candidates=c --query select",
    )
    assert made.status == 0, made.stderr
    expected = ["serve", "serve", "postgres", "report", *["features"] * 4, "report"]
    expected += ["features", "features", "ray", "sql"]
    check_refused(refused, expected)


def test_a_study_of_simulated_logs_says_at_once_that_it_needs_features(tmp_path: Path) -> None:
    check_refused(commands(tmp_path, EXTRAS["features"].modules, "study out"), ["features"])


def test_a_service_with_a_journal_in_postgresql_says_that_it_needs_psycopg(tmp_path: Path) -> None:
    (tmp_path / "topstory.toml").write_text(
        'data = "data"\nport = 0\n[journal]\nurl = "postgresql://nowhere/"\n'
    )
    check_refused(commands(tmp_path, ["psycopg"], "serve --config topstory.toml"), ["postgres"])


def test_the_sentence_names_the_command_that_installs_the_extra() -> None:
    assert sentence("serve") == (
        "the service needs the extra 'serve': pip install 'topstory[serve]'"
    )


def test_every_extra_is_declared_with_the_modules_that_it_brings() -> None:
    declared: dict[str, list[str]] = PROJECT["optional-dependencies"]
    assert set(EXTRAS) == set(declared) - {"all", "dev"}
    owners = packages_distributions()
    for name, extra in EXTRAS.items():
        brought = {canonicalize_name(Requirement(text).name) for text in declared[name]}
        needed = {canonicalize_name(owners[module][0]) for module in extra.modules}
        assert needed == brought


def test_all_is_everything_but_ray() -> None:
    (everything,) = map(Requirement, PROJECT["optional-dependencies"]["all"])
    assert everything.extras == set(EXTRAS) - {"ray"}
