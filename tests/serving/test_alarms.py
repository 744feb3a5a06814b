"""Whatever the service reports as an error has an entry on the page of alarms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import topstory.serving
from topstory.serving.pages.studio import snapshot

ROOT = Path(topstory.serving.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "operations" / "alarms.md"


def errors() -> Iterator[str]:
    """The sentences that are logged as errors, and those of the studio's alarms."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) in ("log.error", "log.exception")
                and isinstance(node.args[0], ast.Constant)
            ):
                yield str(node.args[0].value)
    source = ast.parse(Path(snapshot.__file__).read_text())
    for node in ast.walk(source):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "words":
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "%s"
                for part in (getattr(node.value, "values", None) or [node.value])
            )


ERRORS = sorted(set(errors()))


def test_errors_are_found() -> None:
    assert len(ERRORS) > 15


@pytest.mark.parametrize("sentence", ERRORS)
def test_every_alarm_has_an_entry(sentence: str) -> None:
    page = _plain(PAGE.read_text())
    parts = re.split(r"%[-+.\d]*[a-z]|[:;]", _plain(sentence))
    words = next(part for part in (each.strip(" ;:.,()") for each in parts) if len(part) > 9)
    assert words in page, f"alarms.md does not say what to do about: {sentence}"


def _plain(text: str) -> str:
    return re.sub(r"[`\\\s]+", " ", text).lower()
