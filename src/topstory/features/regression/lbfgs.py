"""L-BFGS on the bilinear regression's loss, preconditioned."""

from __future__ import annotations

import numpy as np
from scipy import optimize
from scipy.optimize import OptimizeResult
from threadpoolctl import threadpool_limits

from topstory.features.regression.early_stopping import EarlyStopping
from topstory.features.regression.objective import Objective
from topstory.features.regression.preconditioner import MAX_FEATURES, Preconditioner
from topstory.kernels.compilation import Floats


def minimise(
    objective: Objective, ridge: float, watch: EarlyStopping, max_iter: int, tol: float
) -> None:
    """Start from W = 0 and the intercept of the mean CTR; `watch` sees each iteration's x."""
    (width, other), mean = objective.shape, objective.mean
    x: Floats = np.zeros(width * other + 1)
    x[-1] = np.log(mean / (1.0 - mean))
    # The engine's threads do the work; additional BLAS threads only slow them down: on two busy
    # cores L-BFGS's own steps took longer than the gradients.
    with threadpool_limits(1):
        watch.see(x)
        turned = None
        if max(width, other) <= MAX_FEATURES:
            turned = Preconditioner.of(objective, ridge)
        search = _Search(objective, x, turned)
        optimize.minimize(
            search,
            search.start,
            jac=True,
            method="L-BFGS-B",
            callback=lambda intermediate_result: watch.see(search.place(intermediate_result)),
            options={"maxiter": max_iter, "maxcor": 10, "ftol": tol, "gtol": 1e-9},
        )


class _Search:
    """The objective as L-BFGS sees it: over v, of which x is a linear function.

    The first step of scipy's L-BFGS has length 1. So v is measured in lengths of the first
    gradient, which makes that step Newton's where the loss is round.
    """

    def __init__(self, objective: Objective, x: Floats, turned: Preconditioner | None) -> None:
        self._objective, self._turned = objective, turned
        self._last = self._asked = x
        loss, gradient = self._in_v(x)
        self._unit = float(np.linalg.norm(gradient)) if turned is not None else 1.0
        self._unit = self._unit or 1.0  # 0 at the minimum
        self._first: tuple[float, Floats] | None = (loss, gradient * self._unit)
        self.start: Floats = np.zeros_like(x)
        self.start[-1] = x[-1] * (1.0 if turned is None else turned.intercept) / self._unit

    def __call__(self, v: Floats) -> tuple[float, Floats]:
        if self._first is not None:  # scipy starts where the first gradient was computed
            known, self._first = self._first, None
            return known
        self._asked = v.copy()
        self._last = self._x(v)
        loss, gradient = self._in_v(self._last)
        return loss, gradient * self._unit

    def place(self, found: OptimizeResult) -> Floats:
        """The x of an iteration, which is nearly always the last one evaluated."""
        return self._last if np.array_equal(found.x, self._asked) else self._x(found.x)

    def _x(self, v: Floats) -> Floats:
        return v.copy() if self._turned is None else self._turned.place(v * self._unit)

    def _in_v(self, x: Floats) -> tuple[float, Floats]:
        loss, gradient = self._objective(x)
        return loss, gradient if self._turned is None else self._turned.slope(gradient)
