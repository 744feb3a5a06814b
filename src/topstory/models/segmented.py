"""Each article's average payoff in each user segment."""

from collections.abc import Callable
from operator import index
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.contexts import leanings, scratch
from topstory.models.averages import AverageModel
from topstory.models.contexts import Contexts, dense_rows, kernel_rows
from topstory.models.priors.prior import Prior

Assignment = Callable[[npt.NDArray[Any]], npt.ArrayLike]


class Segmented(AverageModel):
    """A context-free model for each user segment: ε-greedy (seg) and ucb (seg), §5.3 III.

    Args:
        segments: how many there are, together with an `assignment`. By default one for each
            non-constant feature.
        assignment: users (n, d) -> segments (n,), whole numbers from 0. By default the largest
            non-constant component of the context: the closest of the paper's user clusters.
        prior: where a new article starts in each segment, learned from an earlier log
            (`ts.fit_prior`). With an `assignment` all segments start like the average user.

    >>> Segmented().segment(np.array([0.1, 0.7, 0.2, 1.0]))
    1
    >>> by_first = Segmented(segments=2, assignment=lambda users: users[:, 0] > 0.5)
    >>> by_first.segment(np.array([0.6, 0.4, 1.0]))
    1
    """

    name: ClassVar[str] = "segmented"
    segmented: ClassVar[bool] = True

    def __init__(
        self,
        segments: int | None = None,
        assignment: Assignment | None = None,
        prior: Prior | None = None,
    ) -> None:
        super().__init__()
        self.prior = prior
        if (assignment is None) != (segments is None):
            raise ValueError(
                "segments and assignment go together: how many there are, and which a user is in"
            )
        if segments is not None and segments < 1:
            raise ValueError(f"segments must be at least 1, got {segments!r}")
        self._segments = None if segments is None else index(segments)
        self._assignment = assignment

    def parameters(self) -> dict[str, Any]:
        """How many segments."""
        return {"segments": self._segments}

    def callables(self) -> tuple[str, ...]:
        """The assignment, if one was given."""
        return () if self._assignment is None else ("assignment",)

    @property
    def leans(self) -> bool:
        """Yes, unless there is an assignment."""
        return self._assignment is None

    def _segment_count(self, dimension: int) -> int:
        return self._segments or max(1, dimension - 1)

    def _segments_of_prior(self, segments: int) -> bool:
        if self._assignment is not None or self.prior is None:
            return False
        if len(self.prior.averages) != 1 + segments:
            raise ValueError(
                f"the prior knows {len(self.prior.averages) - 1} segments of users, but here are "
                f"{segments}; fit one on a log with the same features"
            )
        return True

    def segment(self, user: Floats) -> int:
        """The segment of one user."""
        if self._assignment is None:
            return int(np.argmax(user[:-1])) if len(user) > 1 else 0
        return int(self._assigned(user[np.newaxis])[0])

    def segments(self, users: Contexts, start: int, stop: int) -> Slots:
        """The segments of the users start … stop − 1."""
        if self._assignment is not None:
            return self._assigned(dense_rows(users, start, stop))
        out = np.empty(stop - start, np.int32)
        leanings(kernel_rows(users), scratch(users.shape[1]), start, out)
        return out

    def _assigned(self, users: npt.NDArray[Any]) -> Slots:
        assert self._assignment is not None
        found = np.asarray(self._assignment(users))
        segments = found.astype(np.int32)
        if found.shape != (len(users),) or (segments != found).any():
            raise ValueError(
                f"the assignment must give one whole number for each of {len(users)} users, "
                f"got {found.dtype} {found.shape}"
            )
        count = self._segments or 0
        outside = segments[(segments < 0) | (segments >= count)]
        if len(outside):
            raise ValueError(f"the assignment gave segment {outside[0]}, not 0 … {count - 1}")
        return segments
