"""What other policies would have earned, in a process of its own, so that serving is not slowed.

It has what time and memory others leave, takes a question on standard input, and writes lines of
JSON: what it is doing, and in the end what it found.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from topstory.evaluation.comparison import LOGGED, compare
from topstory.evaluation.off_policy.evaluate import evaluate
from topstory.evaluation.training import train
from topstory.events import EventLog
from topstory.policies.registry import NUMBERS, REGISTRY
from topstory.policies.registry import policy as policy_called
from topstory.serving.journal.connect import journal_of
from topstory.serving.upkeep.journal_export import export

MAX_EVENTS = 300_000  # the last ones

Say = Callable[[dict[str, Any]], None]
Method = Literal["evaluate", "replay"]


class WhatIfPolicy(msgspec.Struct, frozen=True):
    """A policy to try: its name, and its numbers."""

    name: str
    parameters: dict[str, float] = {}

    @property
    def label(self) -> str:
        """What it is called on the page."""
        title = REGISTRY[self.name].paper
        numbers = (f"{_symbol(key)} {value:g}" for key, value in self.parameters.items())
        return ", ".join((title, *numbers))


def _symbol(parameter: str) -> str:
    return NUMBERS[parameter].symbol or parameter.replace("_", " ")


class WhatIfQuestion(msgspec.Struct, frozen=True):
    """Where the journal is, what to try, and a folder for the trained policies."""

    journal: str
    pool: str
    candidates: tuple[WhatIfPolicy, ...]
    folder: str
    method: Method = "evaluate"


def answer(question: WhatIfQuestion, say: Say) -> None:
    """Judge every candidate on the journal's last events, and train it on all of them."""
    say({"doing": "reading the journal", "done": 0.0})
    folder = Path(question.folder)
    journal = journal_of(question.journal)
    try:
        export(journal, folder / "log", question.pool)
    finally:
        journal.close()
    log = EventLog.read(folder / "log")
    if len(log) > MAX_EVENTS:
        log = log[len(log) - MAX_EVENTS :]
    found: list[dict[str, Any]] = []
    count = len(question.candidates)
    judge = _replayed if question.method == "replay" else _evaluated
    for place, candidate in enumerate(question.candidates):

        def follow(what: str, done: float, total: float, place: int = place) -> None:
            part = min(1.0, done / total) if total else 0.0
            say({"doing": question.candidates[place].label, "done": (place + part) / (count + 0.5)})

        say({"doing": candidate.label, "done": place / (count + 0.5)})
        found.append(judge(candidate, log, follow) | {"label": candidate.label, "place": place})
        numbers: dict[str, Any] = dict(candidate.parameters)
        made = policy_called(candidate.name, **numbers)
        trained = train(made, log, held_out=0.0).policy if made.model.learns else made
        trained.save(folder / f"{place}.safetensors")
    about = {"method": question.method, "events": len(log), "ctr": float(log.ctr)}
    say({"result": {**about, "candidates": found}})


def _evaluated(
    candidate: WhatIfPolicy, log: EventLog, follow: Callable[..., None]
) -> dict[str, Any]:
    """A policy that learned from the first half and no longer learns, judged on the second."""
    numbers: dict[str, Any] = dict(candidate.parameters)
    judged = evaluate(candidate.name, log, progress=follow, **numbers)
    value = judged[candidate.name]
    interval, lift = value.value.best_interval, value.lift
    return {
        "value": _number(value.value.value),
        "interval": _ends(interval),
        "lift": _number(lift.value),
        "lift_interval": _ends(lift.best_interval),
        "logged": _number(judged.logged.value),
        "effective_events": _number(value.effective_events),
        "cautions": list(value.cautions),
        "judged": judged.events,
        "trained": judged.trained_events,
    }


def _replayed(
    candidate: WhatIfPolicy, log: EventLog, follow: Callable[..., None]
) -> dict[str, Any]:
    """A policy that begins with nothing and learns as it goes: what its deployment bucket earns.

    Only visits count at which it would have shown what was shown.
    """
    numbers: dict[str, Any] = dict(candidate.parameters)
    found = compare(candidate.name, log, baseline=LOGGED, progress=follow, **numbers)
    bucket, lift = found.bucket(candidate.name), found.lift(candidate.name)
    assert lift is not None  # there is always something logged
    cautions = ["too few seeds were run to see paths that fail"] if found.too_few_seeds else []
    if bucket.too_short:
        cautions.append("click rates change too slowly for so few visits: no interval")
    return {
        "value": _number(bucket.weighted_ctr),
        "interval": _ends(bucket.weighted_interval),
        "lift": _number(lift.value),
        "lift_interval": _ends(lift.interval),
        "logged": float(log.ctr),
        "effective_events": bucket.trials,
        "cautions": cautions,
        "judged": bucket.trials,
        "trained": 0,
    }


def _number(value: float) -> float | None:
    return float(value) if value == value else None


def _ends(interval: Any) -> tuple[float, float] | None:
    low, high = _number(interval.low), _number(interval.high)
    return None if low is None or high is None else (low, high)


def main() -> None:
    """Answer the question on standard input."""
    warnings.simplefilter("ignore")  # the page shows the cautions of each value
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=WhatIfQuestion)

    def say(words: dict[str, Any]) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(words) + b"\n")
        sys.stdout.buffer.flush()

    try:
        answer(question, say)
    except (OSError, ValueError, TypeError, KeyError) as error:
        say({"error": str(error)})
