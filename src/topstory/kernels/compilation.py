"""How the kernels are compiled: with numba, typed, cached on disk, and repeatable to the bit."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])

Floats: TypeAlias = NDArray[np.float64]
Slots: TypeAlias = NDArray[np.int32]
Counters: TypeAlias = NDArray[np.int64]

_OPTIONS: dict[str, Any] = {
    # No fastmath: sums are never reordered, so a kernel gives the same bits wherever it is inlined.
    "error_model": "numpy",
    "nogil": True,
    # Kernels allocate nothing, so arrays need no reference counts: their atomic operations made the
    # scan five times slower. (A kernel that does allocate fails to compile.)
    "_nrt": False,
}
_INTERNAL: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: F) -> F:
    """Compile on first use, once for each set of argument types, and keep the result on disk."""
    return cast(F, numba.njit(cache=True, **_OPTIONS)(function))


def inlined(function: F) -> F:
    """The same, for what runs for every event: always part of its caller."""
    return cast(F, numba.njit(cache=True, forceinline=True, **_OPTIONS)(function))


def internal(function: F) -> F:
    """As `compiled`, for what only kernels call.

    It has no entry for Python, which the compiler takes as long for as for the function itself:
    calling it from Python crashes the interpreter. Its `py_func` can be called.
    """
    return cast(F, numba.njit(cache=True, **_INTERNAL)(function))


def internal_inlined(function: F) -> F:
    """The same, for what runs for every event: always part of its caller."""
    return cast(F, numba.njit(cache=True, forceinline=True, **_INTERNAL)(function))


def specialised(generic: Callable[..., Any], *, inline: bool) -> Callable[[F], F]:
    """Choose the body of `generic` inside kernels by the types of its arguments."""
    options: Any = {**_INTERNAL, "cache": True, "forceinline": inline}
    return cast(Callable[[F], F], overload(generic, jit_options=options, strict=False))
