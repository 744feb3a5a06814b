"""What every explorer's rule answers inside the kernels. Each kind's file gives its own bodies.

A rule is a tuple of numbers. Its type decides which bodies are compiled, as a model's state does.
Whatever is drawn depends on the decision's random `root` and the article's `key` alone.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from topstory.kernels.compilation import Floats, body

Kind = TypeVar("Kind", bound=type)
_SCANNED: set[type] = set()


def scanned(kind: Kind) -> Kind:
    """Marks rules by which the best of the raised scores wins, and nothing else decides."""
    _SCANNED.add(kind)
    return kind


def _is_scanned(rule: Any) -> bool:
    return rule.instance_class in _SCANNED


def stages(rule: Any) -> int:
    """How many scans a replayed event takes: the greedy choice, and the explorer's unless equal."""
    raise NotImplementedError("called from kernels only")


def raised(
    rule: Any,
    state: Any,
    a: int,
    x: Any,
    segment: int,
    score: float,
    rival: float,
    near: float,
    root: np.uint64,
    key: np.uint64,
    trials: int,
) -> float:
    """The score of article a, given its estimate; or any number on the same side of `rival`.

    The width is costly, so it is left out where the comparison is decided without it: farther than
    `near` from the rival's score. A rival of NaN asks for the score itself.
    """
    raise NotImplementedError("called from kernels only")


def explored(
    rule: Any,
    leads: bool,
    state: Any,
    place: int,
    x: Any,
    segment: int,
    slots: Any,
    keys: Any,
    root: np.uint64,
    trials: int,
    work: Floats,
) -> bool:
    """Whether the article at this place of the pool `slots` is the explorer's choice.

    `leads` says whether it won the last scan. `work` has room for numbers of the whole pool.
    """
    raise NotImplementedError("called from kernels only")


def draw(
    rule: Any,
    estimates: Floats,
    widths: Floats,
    keys: NDArray[np.uint64],
    root: np.uint64,
    trials: int,
    scores: Floats,
    work: Floats,
) -> None:
    """Fill in scores, the highest of which wins; of equal ones that with the highest priority."""
    raise NotImplementedError("called from kernels only")


def distribute(
    rule: Any, estimates: Floats, widths: Floats, trials: int, out: Floats, work: Floats
) -> None:
    """Fill in the probability of every article: what `draw` comes to over all random roots."""
    raise NotImplementedError("called from kernels only")


@body(explored, _is_scanned, inline=True)
def _as_scanned(
    rule: Any,
    leads: Any,
    state: Any,
    place: Any,
    x: Any,
    segment: Any,
    slots: Any,
    keys: Any,
    root: Any,
    trials: Any,
    work: Any,
) -> bool:
    return bool(leads)


@body(stages, _is_scanned, inline=True)
def _two_scans(rule: Any) -> int:
    return 2
