"""What damaged files cost an import, counted in bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from topstory.events.formats.faults import BadRow


def total_bytes(paths: Sequence[Path]) -> int:
    """The size of the files, as they are on disk."""
    return sum(path.stat().st_size for path in paths)


def lost_bytes(paths: Sequence[Path], intact: Mapping[str, int]) -> int:
    """Bytes of damaged files that were not read."""
    return sum(p.stat().st_size - intact[str(p)] for p in paths if str(p) in intact)


def check_loss(
    paths: Sequence[Path], intact: Mapping[str, int], max_bad: float, strict: bool
) -> None:
    """Raise ValueError if damage costs more than a share of the bytes; BadRow if strict."""
    lost, size = lost_bytes(paths, intact), total_bytes(paths)
    name = list(intact)[-1]
    told = (
        f"{name}: the gzip file is damaged: a checksum fails, or it cannot be decompressed, and "
        f"nothing vouches for the {Path(name).stat().st_size - intact[name]:,} bytes from byte "
        f"{intact[name]:,} on"
    )
    if strict:
        raise BadRow(f"{told}; get the file again, or import without strict to leave them out")
    if lost > max_bad * size:
        raise ValueError(
            f"{told}: {lost:,} of {size:,} bytes are lost ({lost / size:.1%}, more than "
            f"{max_bad:.1%}); nothing was written: get the file again, or allow more to be bad "
            "(max_bad)"
        )
