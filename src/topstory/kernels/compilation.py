"""How the kernels are compiled: with numba, typed, cached on disk, and repeatable to the bit."""

import gc
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numba.extending import overload
from numpy.typing import NDArray

from topstory.kernels.parts import part_options

F = TypeVar("F", bound=Callable[..., Any])

Floats: TypeAlias = NDArray[np.float64]
Slots: TypeAlias = NDArray[np.int32]
Counters: TypeAlias = NDArray[np.int64]

log = logging.getLogger("topstory.kernels")
UNNOTICED_SECONDS = 1.0  # a compilation that takes longer is told of

_OPTIONS: dict[str, Any] = {
    # No fastmath: sums are never reordered, so a kernel gives the same bits wherever it is inlined.
    "error_model": "numpy",
    "nogil": True,
    # Kernels allocate nothing, so arrays need no reference counts: their atomic operations made the
    # scan five times slower. (A kernel that does allocate fails to compile.)
    "_nrt": False,
    # No entry for C: nobody calls it, and it takes the compiler as long as a small kernel.
    "no_cfunc_wrapper": True,
}
_INTERNAL: dict[str, Any] = {**_OPTIONS, **part_options()}


class Compilations(event.Listener):
    """Lets Python's collector of cyclic garbage rest while numba compiles, and says that it does.

    The compiler makes objects by the million, and looking for cycles among them took an eighth of
    its time. Kernels call kernels, so compilations nest; numba's lock lets one thread in at a time.
    """

    depth = 0
    pauses = False
    seconds = 0.0
    told = False

    def on_start(self, event: event.Event | None) -> None:
        """A compilation begins."""
        if self.depth == 0:
            self.pauses = gc.isenabled()
            gc.disable()
            self.began = perf_counter()
        self.depth += 1

    def on_end(self, event: event.Event | None) -> None:
        """It ended, or failed."""
        self.depth -= 1
        passed = self.seconds + perf_counter() - self.began
        if passed > UNNOTICED_SECONDS and not self.told:
            self.told = True
            log.info("Compiling kernels, which takes seconds, once for each kind of policy ...")
        if self.depth == 0:
            self.seconds = passed
            if self.pauses:
                gc.enable()


event.register("numba:compile", Compilations())  # type: ignore[no-untyped-call]


def compiled(function: F) -> F:
    """Compile on first use, once for each set of argument types, and keep the result on disk."""
    return cast(F, numba.njit(cache=True, **_OPTIONS)(function))


def internal(function: F) -> F:
    """As `compiled`, for what only kernels call: a part of them (`topstory.kernels.parts`).

    It has no entry for Python: a call from there is an error.
    """
    return cast(F, _without_entry(numba.njit(cache=True, **_INTERNAL)(function)))


def inlined(function: F) -> F:
    """As `internal`, for what runs for every event: no call is made of it."""
    return cast(F, _without_entry(numba.njit(cache=True, forceinline=True, **_INTERNAL)(function)))


def _without_entry(part: Any) -> Any:
    """Let a call from Python be an error: numba would follow an address that is not there.

    The C code that such a call meets knows what `add_overload` tells it, and asks
    `_compile_for_args` for the rest. Kernels find a part by neither.
    """

    def add_overload(made: Any) -> None:
        part.overloads[tuple(made.signature.args)] = made

    def refuse(*arguments: Any, **named: Any) -> None:
        name = part.py_func.__name__
        raise TypeError(
            f"{name} is a part of kernels and cannot be called from Python; "
            f"{name}.py_func is the same in plain Python"
        )

    part.add_overload, part._compile_for_args = add_overload, refuse
    return part


def specialised(generic: Callable[..., Any], *, inline: bool) -> Callable[[F], F]:
    """Choose the body of `generic` inside kernels by the types of its arguments."""
    options: Any = {
        **_INTERNAL,
        **part_options(late=not inline),
        "cache": True,
        "forceinline": inline,
    }
    return cast(Callable[[F], F], overload(generic, jit_options=options, strict=False))


def body(
    generic: Callable[..., Any], fits: Callable[[Any], bool], *, inline: bool
) -> Callable[[F], F]:
    """The body of `generic` inside kernels, where the type of its first argument fits."""

    def register(function: F) -> F:
        def chosen(*types: Any) -> F | None:
            return function if fits(types[0]) else None

        specialised(generic, inline=inline)(chosen)
        return function

    return register


def instance_of(kind: type) -> Callable[[Any], bool]:
    """Whether a type inside kernels is that of a named tuple."""
    return lambda found: found.instance_class is kind
