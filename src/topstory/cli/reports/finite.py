"""Numbers as JSON takes them: null for what is not finite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from topstory.report.records import finite as finite

if TYPE_CHECKING:
    from topstory.evaluation import Interval

Ends = tuple[float, float] | None  # of a 95 % interval; None if it is unknown
MaybeFloat = float | None


def finite_ends(interval: Interval) -> Ends:
    """Both ends, or None if one of them is not a finite number."""
    known = math.isfinite(interval.low) and math.isfinite(interval.high)
    return (float(interval.low), float(interval.high)) if known else None
