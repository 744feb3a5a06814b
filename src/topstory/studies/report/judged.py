"""The answer of `evaluate` and of `choose`: policies judged on a log that another one wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from topstory.evaluation import Evaluation, PolicyValue, Quantity, Selection
from topstory.evaluation.exploration import VISITS
from topstory.evaluation.off_policy.value import lift_number
from topstory.report import Answer, AnswerPage, Dot, Number
from topstory.report.records import AS_GOOD, RECOMMENDED, finite
from topstory.report.wording import NO_VALUE, amount, per_visit, percent
from topstory.studies.logs.warnings import join_names
from topstory.studies.report.answer import QUESTION, scaled, unit
from topstory.studies.report.closer_look import closer_look

LOGGED = "logged"
COLUMNS = ("policy", "per visit", "95 % interval", "lift", "95 % interval", "effective events")


def evaluation_page(found: Evaluation, log: str, warnings: Sequence[str] = ()) -> AnswerPage:
    """What given policies would earn. Each interval is for that policy alone."""
    lifts = {name: each.lift for name, each in found.values.items()}
    known = [name for name, lift in lifts.items() if lift.value == lift.value]
    best = max(known, key=lambda name: lifts[name].value, default=None)
    sure = best is not None and lifts[best].best_interval.low > 0
    close = () if best is None else _overlapping(found.values, best)
    notes = (
        f"Judged by {found.estimator} on {found.events:,} events of {PurePath(log).name}.",
        f"Intervals cover {found.covers}.",
        "Each interval is for one policy alone. `topstory choose` allows for the number compared.",
        *_these_days(found),
        *_cautions(found),
    )
    answer = _answer(found, lifts, best, sure, close, "95 % interval")
    return _page("topstory evaluate", found, lifts, answer, notes, warnings)


def selection_page(
    found: Selection, log: str, out: str, warnings: Sequence[str] = ()
) -> AnswerPage:
    """Which policy to run. The intervals of lifts hold for all at once."""
    judged = found.evaluation
    notes = (
        found.verdict,
        f"{found.why} {judged.events:,} events of {PurePath(log).name} judged.",
        f"Intervals cover {judged.covers}.",
        f"The winner, trained on the whole log, is {PurePath(out) / 'policy.safetensors'}.",
        *_these_days(judged),
        *_cautions(judged),
    )
    answer = _answer(
        judged, found.together, found.winner, found.sure, found.rivals, "95 % interval for all"
    )
    return _page("topstory choose", judged, found.together, answer, notes, warnings)


def _answer(
    found: Evaluation,
    lifts: Mapping[str, Quantity],
    best: str | None,
    sure: bool,
    close: Sequence[str],
    interval: str,
) -> Answer:
    today = found.baseline == LOGGED
    reference = "what is shown today" if today else found.baseline
    base = found.logged if today else found.values[found.baseline].value

    def mark(name: str) -> str:
        return RECOMMENDED if sure and name == best else AS_GOOD if sure and name in close else ""

    ordered = sorted(found.values, key=lambda name: -_or_last(found.values[name].value.value))
    return Answer(
        question=QUESTION,
        sentences=_sentences(found, lifts, best, sure, close, reference, base.value, interval),
        unit=unit(found.binary),
        reference=reference,
        reference_value=finite(VISITS * base.value),
        dots=tuple(
            Dot(
                name,
                PurePath(name).name,
                scaled(_number(found.values[name].value), VISITS),
                finite(lifts[name].value),
                mark(name),
            )
            for name in ordered
        ),
    )


def _sentences(
    found: Evaluation,
    lifts: Mapping[str, Quantity],
    best: str | None,
    sure: bool,
    close: Sequence[str],
    reference: str,
    base: float,
    interval: str,
) -> tuple[str, ...]:
    if best is None:
        return ("The log says nothing about any of these policies: take a longer one.",)
    name, lift = PurePath(best).name, lifts[best]
    what = "clicks" if found.binary else "of payoff"
    low, high = (lift_number(end).replace("-", "−") for end in lift.best_interval)
    known = lift.best_interval.low == lift.best_interval.low  # else nan
    ends = f" ({interval} {low} to {high} %)" if known else ""
    brings = (
        f"brings {amount(VISITS * found.values[best].value.value)} {what} in {VISITS:,} visits "
        f"where {reference} brings {amount(VISITS * base)}: {percent(abs(lift.value))} "
        f"{'more' if lift.value >= 0 else 'less'}{ends}."
    )
    days = ", on these days" if lift.too_short else ""
    others = [PurePath(each).name for each in close]
    rest = f"; {join_names(others)} may be as good" if others else ""
    if sure:
        return (
            f"Deploy {name}.",
            f"It {brings}",
            f"It is surely better than {reference}{days}{rest}.",
        )
    return (
        f"Change nothing yet: no policy is surely better than {reference}.",
        f"The best, {name}, {brings}",
        f"A longer log may show more{rest}.",
    )


def _page(
    command: str,
    found: Evaluation,
    lifts: Mapping[str, Quantity],
    answer: Answer,
    notes: Sequence[str],
    warnings: Sequence[str],
) -> AnswerPage:
    def row(name: str) -> tuple[str, ...]:
        value, lift = found.values[name], lifts[name]
        return (
            PurePath(name).name,
            per_visit(value.value.value),
            _ends(value.value, per_visit),
            percent(finite(lift.value)),
            _ends(lift, percent),
            f"{value.effective_events:,.0f}",
        )

    rows = tuple(row(dot.policy) for dot in answer.dots)
    sections = closer_look(found)
    return AnswerPage(command, answer, COLUMNS, rows, tuple(notes), tuple(warnings), sections)


def _overlapping(values: Mapping[str, PolicyValue], best: str) -> tuple[str, ...]:
    """The policies whose interval reaches that of the best."""
    low = values[best].value.best_interval.low
    return tuple(
        name
        for name, each in values.items()
        if name != best and not each.value.best_interval.high < low
    )


def _these_days(found: Evaluation) -> list[str]:
    if not any(each.value.too_short or each.lift.too_short for each in found.values.values()):
        return []
    return ["*: the log is too short to speak of other days; the interval is for these days."]


def _cautions(found: Evaluation) -> list[str]:
    return [
        f"{PurePath(name).name}: {caution}."
        for name, each in found.values.items()
        for caution in each.cautions
    ]


def _ends(found: Quantity, write: Callable[[float], str]) -> str:
    low, high = found.best_interval
    if low != low:
        return NO_VALUE
    return f"{write(low)} to {write(high)}{' *' if found.too_short else ''}"


def _number(found: Quantity) -> Number:
    low, high = found.best_interval
    return Number(finite(found.value), finite(low), finite(high))


def _or_last(value: float) -> float:
    return value if value == value else float("-inf")
