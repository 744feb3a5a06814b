"""Pools that list an action more than once: one article, with the sum of the probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from topstory.events.formats.faults import NotAnEvent
from topstory.events.formats.pipeline.descriptions import ArticleDescription
from topstory.events.formats.pipeline.row_batch import pool_fault

MERGED = "identical actions of a pool were merged, and their probabilities added up"
MERGED_UNKNOWN = (
    "identical actions of a pool were merged; only the shown one's probability is known, and taken"
)
SAME_ID = (
    "the pool lists two actions of the same id with different features (each action needs an id "
    "of its own: -o id=hash makes one of its features)"
)


class MergedPool(NamedTuple):
    """The different actions of a pool, and for each action as listed its place among them."""

    actions: tuple[ArticleDescription, ...]
    places: Sequence[int]


def merged_pool(listed: Sequence[ArticleDescription]) -> MergedPool:
    """The pool with identical actions merged; raises NotAnEvent.

    >>> latte, mocha = ArticleDescription("latte", None), ArticleDescription("mocha", None)
    >>> merged_pool([latte, mocha, latte]).places
    [0, 1, 0]
    """
    ids = [action.id for action in listed]
    if len(set(ids)) == len(ids):
        _check(ids)
        return MergedPool(tuple(listed), range(len(ids)))
    found: dict[str, int] = {}
    actions: list[ArticleDescription] = []
    places = []
    for action in listed:
        place = found.setdefault(action.id, len(actions))
        if place == len(actions):
            actions.append(action)
        elif not _same(actions[place], action):
            raise NotAnEvent(SAME_ID)
        places.append(place)
    _check(list(found))
    return MergedPool(tuple(actions), places)


def copies(places: Sequence[int], at: int) -> list[int]:
    """Where the action listed at `at` is listed again.

    >>> copies([0, 1, 0], 2)
    [0]
    """
    return [i for i, place in enumerate(places) if place == places[at] and i != at]


def merged_chance(
    merged: MergedPool, at: int, chance: float, known: Mapping[int, float]
) -> tuple[float, str | None]:
    """The probability of the shown action with its copies, and what to remark; `known`: by place.

    >>> latte, mocha = ArticleDescription("latte", None), ArticleDescription("mocha", None)
    >>> merged_chance(merged_pool([latte, mocha, latte]), 0, 0.5, {0: 0.5, 1: 0.25, 2: 0.25})[0]
    0.75
    """
    if len(merged.actions) == len(merged.places):
        return chance, None
    others = copies(merged.places, at)
    if any(each not in known for each in others):
        return chance, MERGED_UNKNOWN
    return min(1.0, chance + sum(known[each] for each in others)), MERGED


def _check(ids: Sequence[str]) -> None:
    fault = pool_fault(ids)
    if fault is not None:
        raise NotAnEvent(fault)


def _same(one: ArticleDescription, other: ArticleDescription) -> bool:
    if one.features is None or other.features is None:
        return one.features is other.features
    return np.array_equal(one.features, other.features)
