"""One line of Vowpal Wabbit's text format: label, tag and named features."""

from __future__ import annotations

from typing import NamedTuple

from topstory.events.formats.faults import NotAnEvent
from topstory.events.formats.vw.dsjson_decision import SLOTS
from topstory.events.formats.vw.named_features import Named


class Label(NamedTuple):
    """`action:cost:probability`; the action's number has no meaning in cb_adf."""

    cost: float
    probability: float


class VwLine(NamedTuple):
    """A line of a multi-line example."""

    shared: bool
    label: Label | None
    tag: str
    features: list[Named]


def vw_line(text: str) -> VwLine:
    """Parse a line.

    The word that touches the first `|`, or begins with `'`, is the tag. `|User:2 age:0.5 new
    city:Rome` has the namespace User, whose values are doubled.

    >>> vw_line("0:-1:0.25 sports|Action:2 length:0.5 long city:Rome")
    VwLine(shared=False, label=Label(cost=-1.0, probability=0.25), tag='sports',
        features=[('Action^length', 1.0), ('Action^long', 2.0), ('Action^city=Rome', 2.0)])
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
        raise NotAnEvent(SLOTS)
    shared, label = words == ["shared"], None
    if words and not shared:
        label = _label(words)
    return VwLine(shared, label, tag, _features(body))


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
