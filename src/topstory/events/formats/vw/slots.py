"""Examples with several decisions, Vowpal Wabbit's ccb and slates: an event for each slot.

A slot of ccb shows one of the actions that no slot before it shows, and has a cost of its own. A
slot of slates has actions of its own; all slots share one cost, which Vowpal Wabbit teaches each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from topstory.events.formats.faults import NotAnEvent
from topstory.events.formats.pipeline.descriptions import ArticleDescription
from topstory.events.formats.pipeline.validation import outcome_fault
from topstory.events.formats.vw.encodings import Encoding
from topstory.events.formats.vw.identical_actions import merged_chance, merged_pool
from topstory.events.formats.vw.named_features import Named

MAX_CELLS = 1 << 20  # slots times actions, or shared features: more would take very long
ONE_COST = "slates have one cost for all slots: each slot's event has that payoff"
UNLABELLED = "a slot without a label is left out"
UNKNOWN_POOL = (
    "a slot lists the shown action only, and a slot before it has no label: nothing says what it "
    "could show"
)
TOO_MANY = "it has too many slots for its actions and features"
NO_LABEL = "no slot has a label: nothing says what was chosen"
NO_COST = "there is no cost of the slates: nothing says what they paid"


class SlotLabel(NamedTuple):
    """What one slot showed, and what else it could."""

    actions: Sequence[int]  # the one that it showed, and others; from 0, in slates among its own
    chances: Sequence[float]  # their probabilities
    cost: float | None = None  # None: slates have one for all
    included: Sequence[int] | None = None  # the only actions that it may show


class SlotDecision(NamedTuple):
    """The decision of one slot."""

    slot: int
    pool: Sequence[int]  # the actions that it could show
    at: int  # the place of the shown one in the pool
    payoff: float
    propensity: float
    chances: dict[int, float]  # as far as they are recorded, by place in the pool


SlotEvent = tuple[Any, tuple[ArticleDescription, ...], int, float, float]


def ccb(labels: Sequence[SlotLabel | None], actions: int) -> list[SlotDecision]:
    """The decisions of an example of ccb with so many actions; None: a slot without a label.

    >>> ccb([SlotLabel([1], [0.5], -1.0), SlotLabel([2, 0], [0.8, 0.2], 0.0)], 3)[1].pool
    [0, 2]
    """
    _check_size(labels, actions)
    taken: set[int] = set()
    found = []
    for slot, label in enumerate(labels):
        if label is None:
            continue
        pool = sorted(label.actions)
        if len(pool) < 2:
            if None in labels[:slot]:
                raise NotAnEvent(UNKNOWN_POOL)
            allowed = range(actions) if label.included is None else label.included
            pool = [each for each in allowed if each not in taken]
        found.append(_decided(slot, label, pool, actions, taken, label.cost))
    return found


def slates(
    labels: Sequence[SlotLabel | None], slot_of: Sequence[int | None], cost: float | None
) -> list[SlotDecision]:
    """The decisions of an example of slates; `slot_of` has the slot of each action.

    >>> [each.pool for each in slates([SlotLabel([1], [0.5]), SlotLabel([0], [1.0])], [0, 0, 1], 0)]
    [[0, 1], [2]]
    """
    _check_size(labels, len(slot_of))
    if cost is None:
        raise NotAnEvent(NO_COST)
    found = []
    for slot, label in enumerate(labels):
        if label is None:
            continue
        pool = [action for action, of in enumerate(slot_of) if of == slot]
        try:
            actions = [pool[each] if each >= 0 else -1 for each in label.actions]
        except IndexError:
            raise NotAnEvent("a slot names an action that it does not have") from None
        found.append(_decided(slot, label._replace(actions=actions), pool, len(slot_of), (), cost))
    return found


def slot_events(
    decided: Sequence[SlotDecision],
    listed: Sequence[ArticleDescription],
    encoding: Encoding,
    shared: Sequence[Named],
    own: Sequence[Sequence[Named]],
) -> tuple[list[SlotEvent], set[str]]:
    """The events, and what is remarkable; `listed` has all actions, `own` each slot's features.

    All of them are known to be events before any is added to a batch.
    """
    if not decided:
        raise NotAnEvent(NO_LABEL)
    if len(own) * len(shared) > MAX_CELLS:
        raise NotAnEvent(TOO_MANY)
    found, remarks = [], set()
    for each in decided:
        merged = merged_pool([listed[action] for action in each.pool])
        chance, remark = merged_chance(merged, each.at, each.propensity, each.chances)
        encoding.check(merged.actions)
        user = encoding.user([*shared, *own[each.slot], (f"slot={each.slot}", 1.0)])
        found.append((user, merged.actions, merged.places[each.at], each.payoff, chance))
        remarks |= {remark} if remark else set()
    if len(decided) < len(own):
        remarks.add(UNLABELLED)
    return found, remarks


def _check_size(labels: Sequence[SlotLabel | None], actions: int) -> None:
    if len(labels) * max(actions, len(labels)) > MAX_CELLS:
        raise NotAnEvent(TOO_MANY)


def _decided(
    slot: int,
    label: SlotLabel,
    pool: list[int],
    actions: int,
    taken: set[int] | tuple[()],
    cost: float | None,
) -> SlotDecision:
    if not label.actions or len(label.actions) != len(label.chances):
        raise NotAnEvent("a slot needs a probability for each action that it names")
    if not all(0 <= each < actions for each in (*pool, *label.actions)):
        raise NotAnEvent("a slot names an action that it does not have")
    shown = label.actions[0]
    if any(each in taken for each in pool) or len(set(pool)) < len(pool):
        raise NotAnEvent("a slot names an action twice, or one that a slot before it shows")
    if shown not in pool:
        raise NotAnEvent("the shown article is not in the pool")
    if cost is None:
        raise NotAnEvent("a slot has no cost: nothing says what it paid")
    place = {action: i for i, action in enumerate(pool)}
    chances = {
        place[action]: chance
        for action, chance in zip(label.actions, label.chances, strict=True)
        if action in place
    }
    at, payoff, propensity = place[shown], 0.0 - cost, label.chances[0]
    if (fault := outcome_fault(at, len(pool), payoff, propensity)) is not None:
        raise NotAnEvent(fault)
    if isinstance(taken, set):
        taken.add(shown)
    return SlotDecision(slot, pool, at, payoff, propensity, chances)
