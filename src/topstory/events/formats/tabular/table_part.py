"""Some rows of a file's table."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topstory.events.formats.pipeline.validation import RejectedRow
from topstory.events.formats.tabular.arrow_columns import Column


class TablePart(NamedTuple):
    """Some rows of a file's table."""

    columns: dict[str, Column]
    lines: npt.NDArray[np.int64]
    rejected: list[RejectedRow]
    text: Callable[[int], bytes]
