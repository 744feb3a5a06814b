"""What the two linear models have in common: a ridge regression for each article."""

import numpy as np

from topstory.kernels.compilation import Floats
from topstory.models.input_range import MAX_RIDGE, MIN_RIDGE


def ridge_in_range(name: str, value: float) -> float:
    """A ridge: a number above 0, or no inverse exists, and not so near 0 that none is found."""
    if not MIN_RIDGE <= value <= MAX_RIDGE:
        raise ValueError(
            f"{name} must be from {MIN_RIDGE:g} to {MAX_RIDGE:g} (the paper's is 1), got {value!r}"
        )
    return float(value)


def scaled_identities(count: int, size: int, scale: float) -> Floats:
    """(count, size, size) copies of scale·I."""
    return np.tile(np.eye(size) * scale, (count, 1, 1))


def residual(A: Floats, inverse: Floats) -> float:
    """The largest entry of |A·A⁻¹ − I| over a stack of matrices."""
    if not len(A):
        return 0.0
    return float(np.abs(A @ inverse - np.eye(A.shape[1])).max())
