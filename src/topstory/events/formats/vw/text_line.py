"""One line of Vowpal Wabbit's text format: label, tag and named features."""

from __future__ import annotations

from typing import NamedTuple

from topstory.events.formats.faults import NotAnEvent
from topstory.events.formats.vw.named_features import Named
from topstory.events.formats.vw.slots import SlotLabel


class Label(NamedTuple):
    """`action:cost:probability`; the action's number has no meaning in cb_adf."""

    cost: float
    probability: float


class SlotsPart(NamedTuple):
    """What a line says of an example with several decisions."""

    kind: str  # shared, action or slot
    label: SlotLabel | None = None  # of a slot
    cost: float | None = None  # of slates, in the shared line
    slot: int | None = None  # of an action of slates


class VwLine(NamedTuple):
    """A line of a multi-line example."""

    shared: bool
    label: Label | None
    tag: str
    features: list[Named]
    part: SlotsPart | None = None  # None: an example with one decision


def vw_line(text: str) -> VwLine:
    """Parse a line.

    The word that touches the first `|`, or begins with `'`, is the tag. `|User:2 age:0.5 new
    city:Rome` has the namespace User, whose values are doubled.

    >>> vw_line("0:-1:0.25 sports|Action:2 length:0.5 long city:Rome")
    VwLine(shared=False, label=Label(cost=-1.0, probability=0.25), tag='sports',
        features=[('Action^length', 1.0), ('Action^long', 2.0), ('Action^city=Rome', 2.0)],
        part=None)
    >>> vw_line("shared | a b:2").features
    [('a', 1.0), ('b', 2.0)]
    """
    head, bar, body = text.partition("|")
    if not bar:
        raise NotAnEvent("there is no |")
    words, tag = head.split(), ""
    if words and (not head[-1].isspace() or words[-1].startswith("'")):
        tag = words.pop().removeprefix("'")
    if words[:1] in (["ccb"], ["slates"]):
        return VwLine(False, None, tag, _features(body), _slots_part(*words))
    shared, label = words == ["shared"], None
    if words and not shared:
        label = _label(words)
    return VwLine(shared, label, tag, _features(body))


def _slots_part(name: str, kind: str = "", *words: str) -> SlotsPart:
    try:
        if kind == "shared" and len(words) <= (name == "slates"):
            return SlotsPart(kind, cost=float(words[0]) if words else None)
        if kind == "action" and len(words) == (name == "slates"):
            return SlotsPart(kind, slot=int(words[0]) if words else None)
        if kind == "slot" and len(words) <= (1 if name == "slates" else 2):
            return SlotsPart(kind, _slot_label(name == "ccb", *words) if words else None)
    except ValueError:
        pass
    raise NotAnEvent(f"the label is none of {name}: see docs/guides/importing.md")


def _slot_label(costs: bool, chosen: str, included: str | None = None) -> SlotLabel:
    """`action:cost:probability`, others as `action:probability`; slates have no cost there."""
    first, *others = chosen.split(",")
    cost: str | None = None
    if costs:
        action, cost, chance = first.split(":")
        first = f"{action}:{chance}"
    pairs = [each.split(":") for each in (first, *others)]
    actions, chances = zip(*((int(a), float(p)) for a, p in pairs), strict=True)
    only = None if included is None else [int(each) for each in included.split(",")]
    return SlotLabel(actions, chances, None if cost is None else float(cost), only)


def _label(words: list[str]) -> Label:
    parts = words[0].split(":")
    if len(words) == 1 and len(parts) == 3:
        try:
            int(parts[0])
            return Label(float(parts[1]), float(parts[2]))
        except ValueError:
            pass
    raise NotAnEvent("the label is not action:cost:probability")


def _features(body: str) -> list[Named]:
    features: list[Named] = []
    for space in body.split("|"):
        words = space.split()
        prefix, scale = "", 1.0
        if words and not space[0].isspace():
            name, _, weight = words.pop(0).partition(":")
            prefix = f"{name}^" if name else ""
            scale = _number(weight) if weight else 1.0
        for word in words:
            name, colon, value = word.partition(":")
            if not colon:
                features.append((prefix + name, scale))
                continue
            try:
                features.append((prefix + name, float(value) * scale))
            except ValueError:
                features.append((f"{prefix}{name}={value}", scale))
    return features


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise NotAnEvent("the weight of a namespace is not a number") from None
