"""A context whose event has a say in the article's features f: an article's age, say.

The numbers that belong to f are the last of a context before the constant. In the kernels they are
apart: x is what is left. Where they differ between the articles of a pool, `aimed` looks them up.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from topstory.kernels.compilation import Floats, inlined, specialised
from topstory.kernels.contexts import (
    Dense,
    PerArticle,
    PerArticleRows,
    aimed,
    enter_pool,
    load,
    rolled,
    unrolling,
)


class Featured(NamedTuple):
    """One context x as d numbers, and what the event adds to f. The first three as `Dense`."""

    values: Floats  # (d,)
    unroll: tuple[int, ...]
    room: Floats  # (d,)
    event: Floats  # (q,) the numbers of f that the event has
    shift: Floats  # (m,) what the article's own were then, minus what they are; or (0,)
    wide: Floats  # (2, d(1 + q)) room for x ⊗ (1, event), and as much to work in


class FeaturedPerArticle(NamedTuple):
    """The same where numbers of the event differ between articles."""

    values: Floats
    unroll: tuple[int, ...]
    room: Floats
    event: Floats
    shift: Floats
    wide: Floats
    table: NDArray[np.float32]  # (pairs, k) those numbers: first of x, then all of f
    row: int  # of the first article of the pool
    places: NDArray[np.int32]  # (slots,) the place of each article in the pool


Context = Dense | Featured


def featured_scratch(dimension: int, count: int, unrolled: bool = True) -> Featured:
    """Room for a context of so many numbers, `count` of which belong to f."""
    d = dimension - count
    unroll = unrolling(d) if unrolled else ()
    return Featured(
        *(np.zeros(d), unroll, np.zeros(d)),
        *(np.zeros(count), np.zeros(0), np.zeros((2, d * (1 + count)))),
    )


def fill(room: Context, context: Any) -> None:
    """Write a context into the room that a model has for one."""
    if isinstance(room, Dense):
        room.values[:] = context
        return
    own = len(room.values) - 1
    room.values[:own], room.values[own] = context[:own], context[-1]
    room.event[:] = context[own:-1]


def among(
    room: Context, table: NDArray[np.float32], row: int, places: NDArray[np.int32]
) -> PerArticle | FeaturedPerArticle:
    """The context in the room, with these numbers for each article of a pool."""
    if isinstance(room, Dense):
        return PerArticle(*room, table, row, places)
    return FeaturedPerArticle(*room, table, row, places)


@inlined
def part(contexts: Any, t: int, room: Any) -> None:
    """Write event t's context into the room."""
    own, last = room.values.shape[0] - 1, contexts.shape[1] - 1
    for i in range(own):
        room.values[i] = contexts[t, i]
    room.values[own] = contexts[t, last]
    for k in range(room.event.shape[0]):
        room.event[k] = contexts[t, own + k]


@specialised(load, inline=True)
def _load(contexts: Any, t: Any, room: Any) -> Any:
    def dense(contexts: Any, t: Any, room: Any) -> Any:
        part(contexts, t, room)
        return room

    def per_article(contexts: Any, t: Any, room: Any) -> Any:
        enter_pool(contexts, contexts.pool[t])
        part(contexts.rows, t, room)
        return FeaturedPerArticle(
            room.values,
            room.unroll,
            room.room,
            room.event,
            room.shift,
            room.wide,
            contexts.table,
            contexts.starts[t],
            contexts.places,
        )

    if room.instance_class is not Featured:
        return None
    if not isinstance(contexts, types.NamedTuple):
        return dense
    return per_article if contexts.instance_class is PerArticleRows else None


@specialised(aimed, inline=True)
def _aimed(x: Any, a: Any) -> Any:
    def per_article(x: Any, a: Any) -> Any:
        count = x.event.shape[0]
        own, row = x.table.shape[1] - count, x.row + x.places[a]
        first = x.values.shape[0] - 1 - own
        for i in range(own):
            x.values[first + i] = x.table[row, i]
        for k in range(count):
            x.event[k] = x.table[row, own + k]
        return Featured(x.values, x.unroll, x.room, x.event, x.shift, x.wide)

    if x.instance_class is Featured:
        return lambda x, a: x
    return per_article if x.instance_class is FeaturedPerArticle else None


@specialised(rolled, inline=True)
def _rolled(x: Any, a: Any) -> Any:
    def body(x: Any, a: Any) -> Any:
        found = aimed(x, a)
        return Featured(found.values, (), found.room, found.event, found.shift, found.wide)

    return body if x.instance_class in (Featured, FeaturedPerArticle) else None


def beyond(x: Any, static: int, out: Floats) -> None:
    """Write what f has beyond the article's own features: (m,) zeros, but for the event's."""
    raise NotImplementedError("called from kernels only")


@specialised(beyond, inline=False)
def _beyond(x: Any, static: Any, out: Any) -> Any:
    def nothing(x: Any, static: Any, out: Any) -> None:
        out[:] = 0.0

    def featured(x: Any, static: Any, out: Any) -> None:
        out[:static] = 0.0
        for k in range(x.shift.shape[0]):
            out[k] = x.shift[k]
        for k in range(x.event.shape[0]):
            out[static + k] = x.event[k]

    return featured if x.instance_class is Featured else nothing


def scaled(x: Any, values: Floats, factor: float, room: Floats) -> Any:
    """The context factor·x in `values`, with the same f."""
    raise NotImplementedError("called from kernels only")


@specialised(scaled, inline=True)
def _scaled(x: Any, values: Any, factor: Any, room: Any) -> Any:
    def dense(x: Any, values: Any, factor: Any, room: Any) -> Any:
        for i in range(values.shape[0]):
            values[i] *= factor
        return Dense(values, (), room)

    def featured(x: Any, values: Any, factor: Any, room: Any) -> Any:
        for i in range(values.shape[0]):
            values[i] *= factor
        return Featured(values, (), room, x.event, x.shift, x.wide)

    return featured if x.instance_class is Featured else dense


@inlined
def widen(x: Any) -> None:
    """Write x ⊗ (1, event) into the context's own room: x, then x_j·event_k."""
    d, count = x.values.shape[0], x.event.shape[0]
    for j in range(d):
        x.wide[0, j] = x.values[j]
        for k in range(count):
            x.wide[0, d + j * count + k] = x.values[j] * x.event[k]
