"""A user's context inside the kernels: a row of numbers or, when binary and sparse, which are on.

Both forms add the same terms in the same order, so they give the same bits (unless d is so small
that loops are unrolled); the sparse one costs by the number of features that are on, not by d.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from topstory.kernels.compilation import Floats, compiled, inlined, specialised

# Up to this d the loops over features are unrolled: one compilation for each d, three times faster.
UNROLLED_UP_TO = 8


class Dense(NamedTuple):
    """One context x as d numbers. `unroll` has d entries to fix d at compile time, or none."""

    values: Floats
    unroll: tuple[int, ...]
    room: Floats  # (d,) to work in


class Sparse(NamedTuple):
    """One binary context: the features that are on, in ascending order."""

    on: NDArray[np.int32]


class SparseRows(NamedTuple):
    """The binary contexts of many events: event t has indices[indptr[t]:indptr[t + 1]] on."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]


class PerArticle(NamedTuple):
    """One context whose last numbers before the constant depend on the article."""

    values: Floats
    unroll: tuple[int, ...]
    room: Floats
    table: NDArray[np.float32]  # (pairs, k) those numbers
    row: int  # of the first article of the pool
    places: NDArray[np.int32]  # (slots,) the place of each article in the pool


class PerArticleRows(NamedTuple):
    """The contexts of many events, and for each article of their pools the numbers that differ."""

    rows: Any  # (n, d) with the numbers of the article that was shown
    table: NDArray[np.float32]  # (pairs, k)
    starts: NDArray[np.int64]  # (n,) the row of the first article of the pool
    pool: NDArray[np.int32]  # (n,)
    offsets: NDArray[np.int64]  # (pools + 1,)
    slots: NDArray[np.int32]  # pool p holds slots[offsets[p]:offsets[p + 1]]
    places: NDArray[np.int32]  # (slots,) of the articles of the current pool
    current: NDArray[np.int64]  # (1,) the pool that `places` is filled in for


def unrolling(length: int) -> tuple[int, ...]:
    """`length` entries, a number that kernels know when compiled; none if they are many."""
    return (0,) * length if length <= UNROLLED_UP_TO else ()


def scratch(dimension: int) -> Dense:
    """Room for one dense context, that `load` fills."""
    return Dense(np.zeros(dimension), unrolling(dimension), np.zeros(dimension))


@inlined
def enter_pool(contexts: Any, p: int) -> None:
    """Fill in `places` of `PerArticleRows` for pool p, unless they are."""
    if p != contexts.current[0]:
        first = contexts.offsets[p]
        for j in range(first, contexts.offsets[p + 1]):
            contexts.places[contexts.slots[j]] = j - first
        contexts.current[0] = p


def load(contexts: Any, t: int, room: Any) -> Any:
    """Event t's context."""
    raise NotImplementedError("called from kernels only")


@specialised(load, inline=True)
def _load(contexts: Any, t: Any, room: Any) -> Any:
    def dense(contexts: Any, t: Any, room: Any) -> Any:
        for i in range(room.values.shape[0]):
            room.values[i] = contexts[t, i]
        return room

    def sparse(contexts: Any, t: Any, room: Any) -> Any:
        return Sparse(contexts.indices[contexts.indptr[t] : contexts.indptr[t + 1]])

    def per_article(contexts: Any, t: Any, room: Any) -> Any:
        enter_pool(contexts, contexts.pool[t])
        for i in range(room.values.shape[0]):
            room.values[i] = contexts.rows[t, i]
        return PerArticle(
            room.values,
            room.unroll,
            room.room,
            contexts.table,
            contexts.starts[t],
            contexts.places,
        )

    if room.instance_class is not Dense:
        return None  # `topstory.kernels.event_features`
    if not isinstance(contexts, types.NamedTuple):
        return dense
    return per_article if contexts.instance_class is PerArticleRows else sparse


def aimed(x: Any, a: int) -> Any:
    """The context with article a's own numbers, where they depend on it."""
    raise NotImplementedError("called from kernels only")


@specialised(aimed, inline=True)
def _aimed(x: Any, a: Any) -> Any:
    def per_article(x: Any, a: Any) -> Any:
        width = x.table.shape[1]
        first, row = x.values.shape[0] - 1 - width, x.row + x.places[a]
        for i in range(width):
            x.values[first + i] = x.table[row, i]
        return Dense(x.values, x.unroll, x.room)

    if hasattr(x.instance_class, "event"):
        return None  # `topstory.kernels.event_features`
    return per_article if x.instance_class is PerArticle else lambda x, a: x


def rolled(x: Any, a: int) -> Any:
    """Article a's context for loops that are not unrolled: they are compiled once for every d."""
    raise NotImplementedError("called from kernels only")


@specialised(rolled, inline=True)
def _rolled(x: Any, a: Any) -> Any:
    def per_article(x: Any, a: Any) -> Any:
        found = aimed(x, a)
        return Dense(found.values, (), found.room)

    if hasattr(x.instance_class, "event"):
        return None
    if x.instance_class is Sparse:
        return lambda x, a: x
    if x.instance_class is PerArticle:
        return per_article
    return lambda x, a: Dense(x.values, (), x.room)


def linear(v: Floats, a: int, x: Any) -> float:
    """v_aᵀx."""
    raise NotImplementedError("called from kernels only")


@specialised(linear, inline=True)
def _linear(v: Any, a: Any, x: Any) -> Any:
    def unrolled(v: Any, a: Any, x: Any) -> float:
        total = 0.0
        for i in range(len(x.unroll)):
            total += v[a, i] * x.values[i]
        return total

    def dense(v: Any, a: Any, x: Any) -> float:
        total = 0.0
        for i in range(x.values.shape[0]):
            total += v[a, i] * x.values[i]
        return total

    def sparse(v: Any, a: Any, x: Any) -> float:
        total = 0.0
        for i in range(x.on.shape[0]):
            total += v[a, x.on[i]]
        return total

    if x.instance_class is PerArticle:
        return lambda v, a, x: linear(v, a, aimed(x, a))
    if x.instance_class is Sparse:
        return sparse
    return unrolled if len(x[1]) else dense


def quadratic(S: Floats, a: int, x: Any) -> float:
    """xᵀS_a x, at least 0; S_a is symmetric and only its lower triangle is read."""
    raise NotImplementedError("called from kernels only")


@specialised(quadratic, inline=True)
def _quadratic(S: Any, a: Any, x: Any) -> Any:
    def unrolled(S: Any, a: Any, x: Any) -> float:
        total = 0.0
        for i in range(len(x.unroll)):
            half = 0.0
            for j in range(i):
                half += S[a, i, j] * x.values[j]
            half += 0.5 * S[a, i, i] * x.values[i]
            total += x.values[i] * half
        return max(2.0 * total, 0.0)

    def dense(S: Any, a: Any, x: Any) -> float:
        # Row by row, as memory lies: the additions of a row do not wait for one another.
        x.room[:] = 0.0
        for i in range(x.values.shape[0]):
            value = x.values[i]
            if value != 0.0:
                for j in range(i):
                    x.room[j] += S[a, i, j] * value
                x.room[i] = 0.5 * S[a, i, i] * value
        total = 0.0
        for j in range(x.values.shape[0]):
            total += x.room[j] * x.values[j]
        return max(2.0 * total, 0.0)

    def sparse(S: Any, a: Any, x: Any) -> float:
        total = 0.0
        for j in range(x.on.shape[0]):
            half = 0.5 * S[a, x.on[j], x.on[j]]
            for i in range(j + 1, x.on.shape[0]):
                half += S[a, x.on[i], x.on[j]]
            total += half
        return max(2.0 * total, 0.0)

    if x.instance_class is PerArticle:
        return lambda S, a, x: quadratic(S, a, aimed(x, a))
    if x.instance_class is Sparse:
        return sparse
    return unrolled if len(x[1]) else dense


def spread(x: Any, out: Floats) -> None:
    """Write all d numbers of a context into `out`."""
    raise NotImplementedError("called from kernels only")


@specialised(spread, inline=False)
def _spread(x: Any, out: Any) -> Any:
    def dense(x: Any, out: Any) -> None:
        for i in range(out.shape[0]):
            out[i] = x.values[i]

    def sparse(x: Any, out: Any) -> None:
        for i in range(out.shape[0]):
            out[i] = 0.0
        for i in range(x.on.shape[0]):
            out[x.on[i]] = 1.0

    return sparse if x.instance_class is Sparse else dense


def squared_length(x: Any) -> float:
    """xᵀx."""
    raise NotImplementedError("called from kernels only")


@specialised(squared_length, inline=True)
def _squared_length(x: Any) -> Any:
    def dense(x: Any) -> float:
        total = 0.0
        for i in range(x.values.shape[0]):
            total += x.values[i] * x.values[i]
        return total

    return (lambda x: float(x.on.shape[0])) if x.instance_class is Sparse else dense


def leaning(x: Any, dimension: int) -> int:
    """The largest non-constant component: the user's segment. Of equals, the first."""
    raise NotImplementedError("called from kernels only")


@specialised(leaning, inline=True)
def _leaning(x: Any, dimension: Any) -> Any:
    def dense(x: Any, dimension: Any) -> int:
        best = 0
        top = x.values[0]
        for i in range(1, dimension - 1):
            best = i if x.values[i] > top else best
            top = max(top, x.values[i])
        return best

    def sparse(x: Any, dimension: Any) -> int:
        return x.on[0] if x.on.shape[0] and x.on[0] < dimension - 1 else 0

    return sparse if x.instance_class is Sparse else dense


@compiled
def leanings(contexts: Any, room: Dense, start: int, out: NDArray[np.int32]) -> None:
    """`leaning` of the events start, start + 1, … into `out`."""
    for t in range(out.shape[0]):
        out[t] = leaning(load(contexts, start + t, room), room.values.shape[0])
