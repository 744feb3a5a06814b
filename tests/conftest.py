"""Set up the test session: where compiled kernels are kept, how many examples hypothesis tries."""

import hashlib
import os
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parent.parent


def kernels_hash(kernels: Path) -> str:
    """Return a hash of every kernel's source."""
    digest = hashlib.sha256()
    for path in sorted(kernels.rglob("*.py")):
        digest.update(path.relative_to(kernels).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


# numba does not notice that a kernel called from another file changed, so each state of the kernels
# has a cache of its own. numba reads the variable when it is imported: that must come after this.
os.environ.setdefault(
    "NUMBA_CACHE_DIR",
    str(ROOT / ".cache" / f"numba-{kernels_hash(ROOT / 'src' / 'topstory' / 'kernels')}"),
)

# The first call of a kernel compiles it, which no deadline would forgive.
settings.register_profile(
    "topstory", deadline=None, max_examples=50, derandomize="CI" in os.environ
)
settings.load_profile("topstory")
