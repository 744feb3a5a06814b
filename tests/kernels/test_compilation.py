"""A kernel without an entry for Python is called by kernels only."""

import ast
import gc
from pathlib import Path
from typing import Any

import numba
import pytest

from topstory.kernels import compilation, parts

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "src" / "topstory" / "kernels"
INTERNAL = {"internal", "inlined"}


def decorators(node: ast.FunctionDef) -> set[str]:
    return {each.id for each in node.decorator_list if isinstance(each, ast.Name)}


def internal_kernels() -> set[tuple[str, str]]:
    """Module and name of each."""
    found = set()
    for path in KERNELS.rglob("*.py"):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and decorators(node) & INTERNAL:
                found.add((module, node.name))
    return found


def used_in_python(tree: ast.Module, kernels: set[tuple[str, str]]) -> set[str]:
    """Names of such kernels that are used outside of compiled functions."""
    imported = {
        each.asname or each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
        if (node.module, each.name) in kernels
    }
    interpreted = [
        node
        for node in tree.body
        if not (isinstance(node, ast.FunctionDef) and "compiled" in decorators(node))
    ]
    names = {n.id for node in interpreted for n in ast.walk(node) if isinstance(n, ast.Name)}
    return imported & names


def test_only_kernels_use_kernels_without_an_entry_for_python() -> None:
    kernels = internal_kernels()
    assert ("topstory.kernels.algebra", "invert") in kernels
    called = "from topstory.kernels.algebra import invert as i\ndef use(): i()"
    assert used_in_python(ast.parse(called), kernels) == {"i"}
    for folder in ("src", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            if KERNELS not in path.parents:
                assert not used_in_python(ast.parse(path.read_text("utf-8")), kernels), path


def test_a_call_of_a_part_from_python_is_an_error_before_and_after_it_is_compiled() -> None:
    part: Any = compilation.internal(lambda number: 3.0 * number)
    kernel: Any = compilation.compiled(lambda number: part(number))
    for _ in range(2):
        with pytest.raises(TypeError, match="is a part of kernels and cannot be called"):
            part(2.0)
        assert kernel(2.0) == 6.0
    assert part.py_func(2.0) == 6.0


def machine_code(kernel: Any) -> int:
    """Where it is; 0 if there is none."""
    (made,) = kernel.overloads.values()
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


def test_a_part_is_linked_into_its_kernel_and_has_no_machine_code() -> None:
    # A newer numba has to be tried before it is added to TESTED.
    assert numba.__version__.startswith(parts.TESTED)
    options: Any = parts.part_options()
    twice: Any = numba.njit(**options)(lambda number: 2.0 * number)
    four_times: Any = numba.njit(lambda number: twice(twice(number)))
    assert four_times(1.5) == 6.0
    assert machine_code(four_times) != 0
    assert machine_code(twice) == 0


def probed(number: float) -> float:
    """Notes whether garbage is collected while it is compiled."""
    raise NotImplementedError("called from kernels only")


COLLECTS: list[bool] = []


@compilation.specialised(probed, inline=False)
def _probed(number: Any) -> Any:
    COLLECTS.append(gc.isenabled())
    return lambda number: number


def test_garbage_is_not_collected_while_a_kernel_is_compiled() -> None:
    kernel: Any = numba.njit(lambda number: probed(number))
    assert kernel(2.0) == 2.0
    assert COLLECTS
    assert not any(COLLECTS)
    assert gc.isenabled()
