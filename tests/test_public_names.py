"""`import topstory as ts` offers the same names at run time and to type checkers."""

import ast
from importlib import import_module
from pathlib import Path

from docs.generate.python_reference import reference, where

import topstory as ts


def checked_names() -> set[str]:
    """What a type checker sees: the imports under TYPE_CHECKING, stars spelled out."""
    tree = ast.parse(Path(ts.__file__).read_text("utf-8"))
    [block] = [each for each in tree.body if isinstance(each, ast.If)]
    found: set[str] = set()
    for line in block.body:
        assert isinstance(line, ast.ImportFrom)
        for alias in line.names:
            found |= public(str(line.module)) if alias.name == "*" else {alias.name}
    return found


def public(module: str) -> set[str]:
    tree = ast.parse(Path(str(import_module(module).__file__)).read_text("utf-8"))
    return {a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}


def test_type_checkers_see_what_there_is_at_run_time() -> None:
    assert checked_names() == set(ts.__all__)


def test_every_name_can_be_imported() -> None:
    for name in ts.__all__:
        assert getattr(ts, name) is not None
    assert set(ts.__all__) <= set(dir(ts))


def test_the_python_reference_lists_every_name() -> None:
    page = Path(ts.__file__).parents[2] / "docs" / "reference" / "python.md"
    text = page.read_text("utf-8")
    assert text == reference(), "stale: run python -m docs.generate"
    missing = [name for name in ts.__all__ if f"::: {where(name)}\n" not in text]
    assert not missing
