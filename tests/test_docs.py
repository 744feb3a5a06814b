"""The documentation is true: its snippets run, its commands succeed, its modules exist."""

import os
import pkgutil
import re
import shlex
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from topstory.cli.app import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = [ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]
GENERATED = {
    ROOT / "docs" / "reference" / page for page in ("cli.md", "configuration.md", "python.md")
}

FENCE = re.compile(
    r"^ *(?P<marks>```+) *(?P<language>\w*)(?P<options>[^`\n]*)\n"
    r"(?P<body>.*?)^ *(?P=marks)`* *$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\]\((?P<target>[^)#:]+)(?:#[^)]*)?\)")
COMMAND = re.compile(r"^\$ (?P<command>topstory\b(?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
SHELL = re.compile(r"[|&;<>$`*]")  # what only a shell understands
BLOCK = re.compile(r"<!-- begin .*?<!-- end", re.DOTALL)  # tables that the benchmarks write
UNBREAKABLE = re.compile(r"\||!\[|>")  # rows of tables, pictures, formulas
MODULE = re.compile(r"`(?P<name>topstory(?:\.[a-z_]+)+)`")


def name(page: Path) -> str:
    """The page's path in the repository: `docs/guides/study.md`."""
    return page.relative_to(ROOT).as_posix()


class Fence(NamedTuple):
    """One fenced block: its language, options and text, and the line its text begins on."""

    language: str
    options: list[str]
    body: str
    line: int


def fences(text: str) -> list[Fence]:
    return [
        Fence(
            match["language"],
            match["options"].split(),
            textwrap.dedent(match["body"]),
            text.count("\n", 0, match.start("body")) + 1,
        )
        for match in FENCE.finditer(text)
    ]


def run_python(page: Path, module: ModuleType) -> None:
    """Run the page's python fences in one namespace; tracebacks show the page's own lines.

    A process that a fence starts and a later one ends is ended here if that one is never reached.
    """
    with ended_processes():
        for fence in fences(page.read_text("utf-8")):
            if fence.language == "python" and "notest" not in fence.options:
                padding = "\n" * (fence.line - 1)
                try:
                    exec(compile(padding + fence.body, page, "exec"), module.__dict__)
                except Exception as error:
                    error.add_note(f"in the python fence at {page.name}:{fence.line}")
                    raise


@contextmanager
def ended_processes() -> Iterator[None]:
    """End all processes that were started through `subprocess` within, and still run."""
    started: list[subprocess.Popen[Any]] = []
    begin = subprocess.Popen.__init__

    def remember(process: subprocess.Popen[Any], *given: Any, **named: Any) -> None:
        begin(process, *given, **named)
        started.append(process)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", remember)
        try:
            yield
        finally:
            for process in started:
                if process.poll() is None:
                    process.kill()
                    process.wait()
                for stream in (process.stdin, process.stdout, process.stderr):
                    if stream is not None:
                        stream.close()


def run_command(line: str, directory: Path) -> tuple[int, str]:
    """Exit status and output of a line: in this process, which saves a start, or by the shell."""
    if not SHELL.search(line):
        with chdir(directory), warnings.catch_warnings(action="default"):
            result = CliRunner().invoke(app, shlex.split(line.replace("\\\n", " "))[1:])
        return result.exit_code, f"{result.output}{result.exception or ''}"
    installed = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=directory,
        env={**os.environ, "PATH": installed},
        capture_output=True,
        text=True,
    )
    return done.returncode, f"{done.stdout}{done.stderr}"


def run_commands(page: Path, directory: Path) -> None:
    """Run the `$ topstory` lines of the page's console fences; each must exit with 0."""
    for fence in fences(page.read_text("utf-8")):
        if fence.language != "console" or "notest" in fence.options:
            continue
        for match in COMMAND.finditer(fence.body):
            status, output = run_command(match["command"], directory)
            line = fence.line + fence.body.count("\n", 0, match.start())
            assert status == 0, (
                f"{page.name}:{line}: $ {match['command']}\nexit status {status}\n{output}"
            )


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_snippet_of_the_documentation_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Classes defined in a snippet look their own module up by its name.
    module = ModuleType("documentation_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    run_python(page, module)
    run_commands(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_module_named_in_the_documentation_exists(page: Path) -> None:
    for match in MODULE.finditer(page.read_text("utf-8")):
        pkgutil.resolve_name(match["name"])


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=name)
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    for match in LINK.finditer(FENCE.sub("", page.read_text("utf-8"))):
        assert (page.parent / match["target"]).exists(), match["target"]


@pytest.mark.parametrize("page", [p for p in PAGES + OTHERS if p not in GENERATED], ids=name)
def test_prose_is_wrapped_at_100_characters(page: Path) -> None:
    prose = BLOCK.sub("", FENCE.sub("", page.read_text("utf-8")))
    long = [line for line in prose.splitlines() if len(line) > 100 and not UNBREAKABLE.match(line)]
    assert not long


PAGE = """
```python
x = 20
```

1. Indented, and in the same namespace:

    ```python
    x += 1
    ```

```python notest
x = "shown, but not run"
```

```console
$ false
$ topstory --help
```

```console notest
$ topstory --no-such-option
```
"""


def test_python_fences_share_one_namespace(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    module = ModuleType("page")
    run_python(page, module)
    assert module.__dict__["x"] == 21


def test_a_broken_python_fence_fails_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE + "```python\nfine = 1\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run_python(page, ModuleType("page"))
    entry = caught.traceback[-1]
    assert entry.path == page
    assert page.read_text().splitlines()[entry.lineno] == "1 / 0"


def test_a_process_ends_with_the_fence_that_failed(tmp_path: Path) -> None:
    page, module = tmp_path / "page.md", ModuleType("page")
    page.write_text(
        "```python\nimport subprocess, sys\n"
        "run = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n```\n"
        "```python\n1 / 0\n```\n"
    )
    with pytest.raises(ZeroDivisionError):
        run_python(page, module)
    assert module.__dict__["run"].returncode == -9


def test_only_topstory_commands_without_notest_are_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    run_commands(page, tmp_path)


def test_a_failing_command_fails_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ topstory --help\n$ topstory \\\n    --no-such-option\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md:3: \$ topstory"):
        run_commands(page, tmp_path)
