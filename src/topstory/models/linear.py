"""What the two linear models have in common: a ridge regression for each article."""

import numpy as np

from topstory.kernels.compilation import Floats


def positive(name: str, value: float) -> float:
    """A ridge: a finite number above 0, or no inverse exists."""
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number > 0 (the paper's is 1), got {value!r}")
    return float(value)


def scaled_identities(count: int, size: int, scale: float) -> Floats:
    """(count, size, size) copies of scale·I."""
    return np.tile(np.eye(size) * scale, (count, 1, 1))


def residual(A: Floats, inverse: Floats) -> float:
    """The largest entry of |A·A⁻¹ − I| over a stack of matrices."""
    if not len(A):
        return 0.0
    return float(np.abs(A @ inverse - np.eye(A.shape[1])).max())
