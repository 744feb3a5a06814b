"""One ridge regression over all coefficients, as good as exact: the reference for any scale.

Sums over trials are kept without rounding, and solved for with 100 decimal digits. Squaring a
condition number of 1e19 then costs 38 of them. (80-bit arithmetic was not enough: what articles
share rests on its ridge alone in some directions, and contexts of 1e12 are 6e17 times as long.)
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Exact = npt.NDArray[np.object_]  # of Decimal

DIGITS = Context(prec=100, Emin=MIN_EMIN, Emax=MAX_EMAX)
BITS, MOST_ROWS = 16, 2**20  # a sum of so many products of such parts is exact in float64


class ExactRidge:
    """Columns: each article's own coefficients (d), then the shared ones (d·m, or none)."""

    def __init__(
        self, d: int, ridge: float, shared_ridge: float, features: dict[str, Floats]
    ) -> None:
        self.d, self.places = d, {a: i for i, a in enumerate(features)}
        own, shared = d * len(features), d * len(next(iter(features.values())))
        with localcontext(DIGITS):
            self.features = {a: exactly(f) for a, f in features.items()}
            self.A: Exact = np.full((own + shared, own + shared), Decimal(0))
            np.fill_diagonal(self.A, [Decimal(ridge)] * own + [Decimal(shared_ridge)] * shared)
            self.b: Exact = np.full(own + shared, Decimal(0))
        self.lower: Exact | None = None

    def explained(self, article: str) -> Exact:
        """(d, columns): a context times this is what a trial's payoff is explained by."""
        f, one = self.features[article], np.full((self.d, self.d), Decimal(0))
        np.fill_diagonal(one, Decimal(1))
        own = [one if a == article else one * Decimal(0) for a in self.places]
        return np.hstack([*own, np.kron(one, f)]) if len(f) else np.hstack(own)

    def shown(self, contexts: Floats, article: str) -> None:
        """The article was shown to these users."""
        with localcontext(DIGITS):
            E, self.lower = self.explained(article), None
            used = np.flatnonzero((E != 0).any(axis=0))  # the others would add zeros, slowly
            E = E[:, used]
            self.A[np.ix_(used, used)] += E.T @ products(contexts, contexts) @ E

    def paid(self, contexts: Floats, article: str, payoffs: Floats) -> None:
        """It paid this much."""
        with localcontext(DIGITS):
            paid = products(contexts, payoffs[:, np.newaxis])[:, 0]
            self.b = self.b + paid @ self.explained(article)

    def bounds(self, x: Floats, pool: list[str]) -> tuple[Floats, Floats]:
        """(K,) estimates and widths."""
        with localcontext(DIGITS):
            if self.lower is None:
                self.lower = cholesky(self.A, self.d, self.d * len(self.places))
            right = np.vstack([self.b, *(exactly(x) @ self.explained(a) for a in pool)]).T
            solved = np.zeros_like(right)
            for i, row in enumerate(self.lower):
                solved[i] = (right[i] - row[:i] @ solved[:i]) / row[i]
            target, ours = solved[:, 0], solved[:, 1:]
            widths = [total.sqrt() for total in (ours * ours).sum(axis=0)]
            return (target @ ours).astype(np.float64), np.array(widths).astype(np.float64)


def cholesky(A: Exact, d: int, own: int) -> Exact:
    """The lower triangle L with LLᵀ = A.

    The first `own` columns are of articles, d each, which have nothing in common: A and L are 0
    there, and those zeros are left out.
    """
    L, places = np.full_like(A, Decimal(0)), np.arange(len(A))
    for k in range(len(A)):
        first = k - k % d if k < own else 0
        rows = places[(places >= k) & ((places < first + d) | (places >= own))]
        column = A[rows, k] - L[rows, first:k] @ L[k, first:k]
        L[rows, k] = column / column[0].sqrt()
    return L


def products(left: Floats, right: Floats) -> Exact:
    """The sums over rows of all products of a column of `left` with one of `right`, exactly."""
    assert len(left) <= MOST_ROWS
    (ours, our_units), (theirs, their_units) = parts(left), parts(right)
    total: Exact = np.full((left.shape[1], right.shape[1]), Decimal(0))
    for i, mine in enumerate(ours):
        for j, other in enumerate(theirs):
            total = total + exactly(mine.T @ other) * Decimal(2) ** (-BITS * (i + j + 2))
    return np.asarray(total * np.outer(our_units, their_units))


def parts(values: Floats) -> tuple[list[npt.NDArray[np.float64]], Exact]:
    """Whole numbers of `BITS` bits that make up the values, the first the largest; and units."""
    exponents = np.frexp(np.abs(values).max(axis=0, initial=0.0))[1]
    left, found = np.ldexp(values, -exponents), []
    while left.any():
        left = np.ldexp(left, BITS)
        whole = np.trunc(left)
        left = left - whole
        found.append(whole.astype(np.float64))
    return found, np.array([Decimal(2) ** int(exponent) for exponent in exponents])


def exactly(values: Floats) -> Exact:
    """The very same numbers."""
    tops, exponents = np.frexp(values)
    whole = np.vectorize(int, otypes=[object])(np.ldexp(tops, 64))  # of 64 bits at most
    units = np.vectorize(lambda exponent: Decimal(2) ** int(exponent - 64), otypes=[object])
    made: Callable[..., Exact] = np.vectorize(Decimal, otypes=[object])
    return made(whole) * units(exponents) if np.size(values) else np.zeros(0, object)
