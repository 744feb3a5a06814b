"""Parts of kernels: functions that only kernels call, of which no machine code is made alone.

numba optimises every function and makes machine code of it, links it into each function that calls
it, and does both again there: a function that is four calls deep is compiled four times. Of a part
no machine code is made, and large ones are not optimised until they are in the kernel that Python
calls. So the first hybrid replay waits about a quarter less for the compiler.

This relies on what numba does not promise to keep, so it is done only with those versions of numba
that the tests ran with. With another one, numba's own way makes the same kernels, but later.
"""

from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

TESTED = ("0.68.",)


class PartLibrary(JITCodeLibrary):
    """One function and all that it calls, for others to link in."""

    optimised = False

    def finalize(self: Any) -> None:
        """Link in what it calls, and make no machine code."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        if self.optimised:
            self._optimize_final_module()
        self._finalized = True

    def get_pointer_to_function(self: Any, name: str) -> int:
        """0: there is nothing to call."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self: Any) -> Any:
        """Takes the place of the owner, whom numba asks to connect the machine code."""
        return _NothingToConnect()

    def serialize_using_object_code(self: Any) -> tuple[str, str, tuple[bytes, bytes]]:
        """For the cache: the translation, and machine code of what numba connects on loading."""
        module = self._codegen._create_empty_module(self.name)
        environments = [
            str(each)
            for each in self._final_module.global_variables
            if "NumbaEnv" in each.name and not each.is_declaration
        ]
        connected = llvm.parse_assembly("\n".join([str(module), *environments]))
        machine_code = self._codegen._tm.emit_object(connected)
        return self.name, "object", (machine_code, self._get_module_for_linking().as_bitcode())


class _NothingToConnect:
    def set_env(self, name: str, environment: object) -> None:
        """Nothing."""


class PartCompiler(Compiler):
    """As numba compiles, into a `PartLibrary`."""

    optimised = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)  # type: ignore[no-untyped-call]
        if self.state.library is None:
            library: Any = PartLibrary
            self.state.library = library(self.state.targetctx.codegen(), "part")
            self.state.library.enable_object_caching()
            self.state.library.optimised = self.optimised


class LatePartCompiler(PartCompiler):
    """The same, but optimised in the kernel only."""

    optimised = False


def part_options(late: bool = False) -> dict[str, Any]:
    """What `numba.njit` is given for a part.

    Loops of a known length become fast only if they are optimised before they are part of others:
    disjoint scans took 1.7 times as long without. What takes a whole state has little to gain from
    that, and is the largest of all: it is optimised `late`.
    """
    if not numba.__version__.startswith(TESTED):
        return {"no_cpython_wrapper": True}
    compiler = LatePartCompiler if late else PartCompiler
    return {"no_cpython_wrapper": True, "pipeline_class": compiler}
