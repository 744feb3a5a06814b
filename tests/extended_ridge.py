"""One ridge regression over all coefficients, in 80-bit arithmetic: the reference for any scale.

It is solved by Householder reflections of the design itself, never of its square, so it loses half
as many digits to a bad condition number as the normal equations do, and starts with 64 bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Extended = npt.NDArray[np.longdouble]
Floats = npt.NDArray[np.float64]

BLOCK = 2000  # rows that are taken in at once


def reflect(design: Extended) -> Extended:
    """The upper triangle R with RᵀR = designᵀ·design."""
    left, columns = design.copy(), design.shape[1]
    for k in range(columns):
        mirror = left[k:, k].copy()
        length = np.sqrt((mirror * mirror).sum())
        if length:
            mirror[0] += length if mirror[0] >= 0 else -length
            mirror /= np.sqrt((mirror * mirror).sum())
            left[k:, k:] -= 2 * np.outer(mirror, mirror @ left[k:, k:])
    return left[:columns]


class ExtendedRidge:
    """Columns: the shared coefficients (d·m of them, or none), then each article's own (d)."""

    def __init__(
        self, d: int, ridge: float, shared_ridge: float, features: dict[str, Floats]
    ) -> None:
        self.d, self.features, self.places = d, features, {a: i for i, a in enumerate(features)}
        shared = d * len(next(iter(features.values())))
        priors = [shared_ridge] * shared + [ridge] * (d * len(features))
        self.shared, self.columns = shared, len(priors)
        self.upper: Extended = np.diag(np.sqrt(np.array(priors, np.longdouble)))
        self.target: Extended = np.zeros(self.columns, np.longdouble)
        self.waiting: list[Extended] = []

    def rows(self, contexts: Floats, article: str) -> Extended:
        """(n, columns) what a trial's payoff is explained by."""
        x = np.atleast_2d(contexts).astype(np.longdouble)
        out = np.zeros((len(x), self.columns), np.longdouble)
        f = self.features[article].astype(np.longdouble)
        out[:, : self.shared] = (x[:, :, np.newaxis] * f).reshape(len(x), self.shared)
        begin = self.shared + self.d * self.places[article]
        out[:, begin : begin + self.d] = x
        return out

    def shown(self, contexts: Floats, article: str) -> None:
        """The article was shown to these users."""
        self.waiting.append(self.rows(contexts, article))
        if sum(map(len, self.waiting)) >= BLOCK:
            self.take_in()

    def paid(self, contexts: Floats, article: str, payoffs: npt.ArrayLike) -> None:
        """It paid this much."""
        self.target += np.atleast_1d(payoffs).astype(np.longdouble) @ self.rows(contexts, article)

    def take_in(self) -> None:
        """Reflect the rows that wait into the triangle."""
        self.upper = reflect(np.vstack([self.upper, *self.waiting]))
        self.waiting = []

    def bounds(self, x: Floats, pool: list[str]) -> tuple[Floats, Floats]:
        """(K,) estimates and widths."""
        if self.waiting:
            self.take_in()
        right = np.vstack([self.target, *(self.rows(x, article) for article in pool)]).T
        solved = np.zeros_like(right)
        for i in range(self.columns):
            solved[i] = (right[i] - self.upper[:i, i] @ solved[:i]) / self.upper[i, i]
        target, ours = solved[:, 0], solved[:, 1:]
        estimates, widths = target @ ours, np.sqrt((ours * ours).sum(axis=0))
        return estimates.astype(np.float64), widths.astype(np.float64)
