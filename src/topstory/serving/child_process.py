"""Child processes that end when the process that started them does, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from importlib import import_module

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def command(module: str) -> list[str]:
    """Run `main()` of a module in a child of this process, whose arguments follow."""
    begin = f"from {__name__} import begin; begin({os.getpid()}, {module!r})"
    return [sys.executable, "-c", begin]


def begin(parent: int, module: str) -> None:
    """Run `main()` of a module, until the parent ends.

    The kernel sends the signal (Linux): a process that imports, compiles, computes or is stopped
    sees no end of file. Elsewhere that is what ends it, once it comes to it.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        sys.exit(1)
    import_module(module).main()
