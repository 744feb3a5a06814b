"""Speed and memory, measured: `python -m benchmarks`."""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).parent.parent


def _kernels_hash() -> str:
    digest = hashlib.sha256()
    kernels = ROOT / "src" / "topstory" / "kernels"
    for path in sorted(kernels.rglob("*.py")):
        digest.update(path.relative_to(kernels).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


# numba does not notice that a kernel called from another file changed, so each state of the kernels
# has a cache of its own. numba reads the variable when it is imported: that must come after this.
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache" / "bench" / _kernels_hash()))
