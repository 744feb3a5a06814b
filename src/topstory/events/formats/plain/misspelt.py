"""Fields that look like a propensity but are not called `propensity`, and so are not read."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from topstory.events.formats.faults import Faults

NAMES = ("propensity", "propensities", "propensity_score", "probability", "pscore")
SIMILAR = 0.8  # of difflib's ratio; `propensty` has 0.95


def misspelt_propensity(names: Iterable[str]) -> str | None:
    """The field that is probably meant; None if there is none, or `propensity` is there.

    >>> misspelt_propensity(["user", "Propensty"]), misspelt_propensity(["pool", "propensity"])
    ('Propensty', None)
    """
    given = list(names)
    if "propensity" in given:
        return None
    for name in given:
        word = name.strip().lower()
        if word in ("p", "prob") or get_close_matches(word, NAMES, 1, SIMILAR):
            return name
    return None


def note_misspelt(
    names: Iterable[str], faults: Faults, path: Path | str, line: int = 1, text: bytes = b""
) -> None:
    """Remark on such a field."""
    name = misspelt_propensity(names)
    if name is not None:
        remark = f"the field {name!r} is not read: if it is the propensity, call it 'propensity'"
        faults.note(remark, str(path), line, text)
