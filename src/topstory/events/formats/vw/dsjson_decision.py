"""Decoding one line of decision-service JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from topstory.events.formats.faults import NotAnEvent
from topstory.events.formats.pipeline.row_batch import general_reason
from topstory.events.formats.vw.named_features import Named, feature_id, named_features
from topstory.events.formats.vw.slots import SlotLabel

Names = tuple[str, ...]

HASH = "hash"
DEFAULT_IDS: tuple[Names, ...] = (("id",), ("i", "id"), ("_tag",))


class SlotOutcome(msgspec.Struct):
    """What one of several slots showed."""

    ranking: list[int] | int = msgspec.field(name="_a", default_factory=list)  # from 0
    probabilities: list[float] | float = msgspec.field(name="_p", default_factory=list)
    cost: float | None = msgspec.field(name="_label_cost", default=None)


class LoggedDecision(msgspec.Struct):
    """The fields of a line that are used; `c` is kept as raw JSON."""

    c: msgspec.Raw
    cost: float | None = msgspec.field(name="_label_cost", default=None)
    probability: float | None = msgspec.field(name="_label_probability", default=None)
    action: int | None = msgspec.field(name="_label_Action", default=None)  # from 1
    index: int | None = msgspec.field(name="_labelIndex", default=None)  # from 0
    timestamp: datetime | None = msgspec.field(name="Timestamp", default=None)
    ranking: list[int] = msgspec.field(name="a", default_factory=list)  # from 1
    probabilities: list[float] = msgspec.field(name="p", default_factory=list)  # in that order
    pdrop: float | None = None
    skip: bool = msgspec.field(name="_skipLearn", default=False)
    outcomes: list[SlotOutcome] = msgspec.field(name="_outcomes", default_factory=list)

    def slot_labels(self, slots: Sequence[Any]) -> list[SlotLabel | None]:
        """What each slot showed; None where nothing says so."""
        if len(self.outcomes) != len(slots):
            raise NotAnEvent("there are not as many _outcomes as _slots")
        return [_slot_label(each, slot) for each, slot in zip(self.outcomes, slots, strict=True)]

    def at(self) -> int:
        """The position of the chosen action among the actions."""
        if self.action is not None:
            return self.action - 1
        if self.index is not None:
            return self.index
        raise NotAnEvent("there is no _label_Action: nothing says what was chosen")

    def chance_of(self, places: Iterable[int]) -> float | None:
        """The sum of the probabilities of some actions; None if one is not recorded."""
        try:
            return sum(self.probabilities[self.ranking.index(place + 1)] for place in places)
        except (ValueError, IndexError):
            return None

    def payoff(self) -> float:
        """The payoff: the negative cost."""
        if self.cost is None:
            raise NotAnEvent("there is no _label_cost: nothing says what it paid")
        return 0.0 - self.cost

    def propensity(self) -> float:
        """The chosen action's probability: its label's, else from `a` and `p`."""
        if self.probability is not None:
            return self.probability
        chance = self.chance_of([self.at()])
        if chance is None:
            raise NotAnEvent("there is no _label_probability, nor p of the chosen action")
        return chance


_LINE = msgspec.json.Decoder(LoggedDecision)
_CONTEXT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ACTIONS = msgspec.json.Decoder(list[msgspec.Raw])


def decode(line: bytes) -> tuple[LoggedDecision, dict[str, msgspec.Raw]]:
    """The decision, and its context by keys; raises NotAnEvent.

    >>> line = b'{"_label_cost": -1, "_label_probability": 0.5, "_label_Action": 2, '
    >>> line += b'"c": {"User": {"age": 3}, "_multi": [{"id": "a"}, {"id": "b"}]}}'
    >>> decision, context = decode(line)
    >>> decision.at(), decision.payoff(), decision.propensity(), list(context)
    (1, 1.0, 0.5, ['User', '_multi'])
    """
    decision: LoggedDecision = _checked(_LINE, line)
    context: dict[str, msgspec.Raw] = _checked(_CONTEXT, decision.c)
    if "_multi" not in context:
        raise NotAnEvent("there is no _multi: nothing says what could be shown")
    return decision, context


def _slot_label(outcome: SlotOutcome, slot: Any) -> SlotLabel | None:
    actions, chances = outcome.ranking, outcome.probabilities
    actions = [actions] if isinstance(actions, int) else actions
    chances = [chances] if isinstance(chances, float) else chances
    included = slot.get("_inc") if isinstance(slot, dict) else None
    if included is not None:
        included = _checked(_NUMBERS, msgspec.json.encode(included))
    return SlotLabel(actions, chances, outcome.cost, included) if actions else None


def shared_features(context: dict[str, msgspec.Raw]) -> list[Named]:
    """The features of the context without the actions."""
    shared = {key: parse_json(raw) for key, raw in context.items() if key != "_multi"}
    return _flat(shared)


def slot_features(slot: Any) -> list[Named]:
    """The features of a slot: what it has but its id and its list of actions."""
    if not isinstance(slot, dict):
        raise NotAnEvent("a slot is not an object")
    return _flat(slot)


def slot_number(action: Any) -> int | None:
    """Which slot of slates an action is for, from 0; None in ccb."""
    number = action.get("_slot_id") if isinstance(action, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def actions(multi: bytes) -> list[bytes]:
    """The texts of the actions in `_multi`; raises NotAnEvent.

    >>> actions(b'[{"id": "a"}, {"id": "b"}]')
    [b'{"id": "a"}', b'{"id": "b"}']
    """
    try:
        return list(map(bytes, _ACTIONS.decode(multi)))
    except msgspec.DecodeError:
        raise NotAnEvent("_multi is not a list of actions") from None


def id_and_features(action: Any, path: Names | None) -> tuple[str, list[Named]]:
    """An action's id, and its features without the id; `path` says where the id is.

    >>> id_and_features({"i": {"id": "Latte", "constant": 1}, "j": [{"type": "hot"}]}, None)
    ('Latte', [('i^constant', 1.0), ('j^type=hot', 1.0)])
    """
    if not isinstance(action, dict):
        raise NotAnEvent("an action is not an object")
    features = _flat(action)
    if path == (HASH,):
        return feature_id(features), features
    for names in DEFAULT_IDS if path is None else (path,):
        value: Any = action
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str | int) and value != "" and not isinstance(value, bool):
            own = "^".join(names)
            return str(value), [each for each in features if each[0] not in (own, f"{own}={value}")]
    if path is None:
        return feature_id(features), features
    raise NotAnEvent(f"an action has no {'.'.join(path)}, which was to be its id")


def parse_json(raw: msgspec.Raw | bytes) -> Any:
    """Any JSON; raises NotAnEvent."""
    return _checked(_ANY, raw)


_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_NUMBERS = msgspec.json.Decoder(list[int])


def _flat(value: Any) -> list[Named]:
    try:
        return named_features(value)
    except RecursionError:
        raise NotAnEvent("its JSON is nested too deeply") from None


def _checked(decoder: msgspec.json.Decoder[Any], text: msgspec.Raw | bytes) -> Any:
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise NotAnEvent(f"not a decision: {general_reason(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NotAnEvent("not valid JSON") from None
    except RecursionError:
        raise NotAnEvent("its JSON is nested too deeply") from None
