"""A kernel without an entry for Python is called by kernels only: from Python it would crash."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "src" / "topstory" / "kernels"
INTERNAL = {"internal", "internal_inlined"}


def internal_kernels() -> set[tuple[str, str]]:
    """Module and name of each."""
    found = set()
    for path in KERNELS.rglob("*.py"):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                decorators = {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
                if decorators & INTERNAL:
                    found.add((module, node.name))
    return found


def test_only_kernels_import_kernels_without_an_entry_for_python() -> None:
    internal = internal_kernels()
    assert ("topstory.kernels.algebra", "invert") in internal
    for folder in ("src", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            if KERNELS in path.parents:
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ImportFrom):
                    imported = {(node.module, each.name) for each in node.names}
                    assert not imported & internal, path
