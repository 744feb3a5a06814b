"""Child processes that end when the process that started them does, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
SPARE_NICE = 15
# The rest of the environment may hold secrets that are not for children.
INHERITED = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
INHERITED_PREFIXES = ("LC_", "PYTHON", "NUMBA_", "OMP_", "OPENBLAS_", "MKL_", "COV", "MALLOC_")


def command(module: str, spare: bool = False) -> list[str]:
    """Run `main()` of a module in a child of this process, whose arguments follow.

    `spare`: it gets what time and memory others leave, and if memory runs out it is the first to
    go (Linux).
    """
    begin = f"from {__name__} import begin; begin({os.getpid()}, {module!r}, {spare})"
    return [sys.executable, "-c", begin]


def environment(more: tuple[str, ...] = ()) -> dict[str, str]:
    """What a child needs of the environment, and variables that begin with one of `more`."""
    prefixes = (*INHERITED_PREFIXES, *more)
    return {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or name.startswith(prefixes)
    }


def begin(parent: int, module: str, spare: bool = False) -> None:
    """Run `main()` of a module, until the parent ends.

    The kernel sends the signal (Linux): a process that imports, compiles, computes or is stopped
    sees no end of file. Elsewhere that is what ends it, once it comes to it.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        sys.exit(1)
    if spare:
        os.nice(SPARE_NICE)
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
    import_module(module).main()
