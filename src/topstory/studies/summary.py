"""What a study says, in words: which policy to deploy, what it earns, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topstory.report import Cell, Number, Ridge, Row, Scatter, Table1
from topstory.studies.settings import BASELINE

CONTEXT_FREE = ("egreedy", "ucb")
GREEK = {"epsilon": "ε", "alpha": "α"}


def summary(
    table: Table1, scatters: Sequence[Scatter], ridges: Sequence[Ridge] = ()
) -> tuple[str, ...]:
    """Sentences, the most important first."""
    return tuple(
        sentence
        for sentences in (
            _advice(table),
            _features(table),
            _exploring(table),
            _sparse(table),
            _lifted(scatters),
            _searched(ridges),
        )
        for sentence in sentences
    )


def _advice(table: Table1) -> Iterator[str]:
    size = max(table.sizes)
    row = max(table.rows, key=lambda row: _value(_at(row, size).deploy))
    best = _at(row, size)
    if best.deploy.value is None:
        yield "Too few clicks to say which policy to deploy: replay a longer log."
        return
    lift, named = best.deploy_lift, _parameters(best)
    earned = (
        f"its deployment bucket earned {best.deploy.value:.2f} times what random articles do"
        f"{_ends(best.deploy)}"
    )
    if row.policy == BASELINE:
        yield f"Deploy {row.name} with {named}: {earned}, and no other policy earned more."
        return
    if lift.low is None or lift.low <= 0:
        yield (
            f"No policy is surely better than ε-greedy: the best, {row.name} with {named}, earned "
            f"{_percent(lift.value)} more{_lift_ends(lift)}."
        )
        return
    yield (
        f"Deploy {row.name} with {named}: {earned}, {_percent(lift.value)} more than ε-greedy's"
        f"{_lift_ends(lift)}."
    )
    if best.learn.value is not None:
        yield (
            f"The traffic on which it explores and learns earned {best.learn.value:.2f}"
            f"{_ends(best.learn)}."
        )
    close = [
        other.name
        for other in table.rows
        if other is not row and (_at(other, size).deploy.high or 0) >= best.deploy.value
    ]
    if close:
        yield (
            f"{_listed(close)} may be as good: the interval of "
            f"{'its CTR' if len(close) == 1 else 'each'} reaches that far."
        )


def _features(table: Table1) -> Iterator[str]:
    size = max(table.sizes)
    plain = [_at(row, size).deploy.value for row in table.rows if row.policy in CONTEXT_FREE]
    users = [_at(row, size).deploy.value for row in table.rows if row.policy not in CONTEXT_FREE]
    known_plain = [value for value in plain if value is not None]
    known_users = [value for value in users if value is not None]
    if not known_plain or not known_users:
        return
    ahead = sum(value > max(known_plain) for value in known_users)
    yield (
        f"Knowing the user helps: {ahead} of {len(known_users)} policies that use features earn "
        f"more than the best that does not ({max(known_plain):.2f}); the best of them earns "
        f"{max(known_users):.2f}."
        if ahead
        else f"Features of users did not help here: no policy that uses them earns more than "
        f"{max(known_plain):.2f}, which takes none."
    )
    omniscient = table.omniscient.value
    if omniscient is not None:
        above = sum(value > omniscient for value in known_users)
        yield (
            f"Always showing the article that proved best for everyone would have earned "
            f"{omniscient:.2f}, in hindsight; {above or 'none'} of those policies "
            f"{'earn' if above > 1 else 'earns'} more."
        )


def _exploring(table: Table1) -> Iterator[str]:
    size = max(table.sizes)
    rows = {row.policy: row for row in table.rows}
    ahead = pairs = 0
    for name, row in rows.items():
        guided = rows.get(name.replace("egreedy", "ucb")) or rows.get(
            name.replace("egreedy", "linucb")
        )
        if name.startswith("egreedy") and guided is not None:
            pairs += 1
            ahead += _value(_at(guided, size).learn) > _value(_at(row, size).learn)
    if pairs:
        yield (
            f"While it learns, a policy pays for exploring: with {ahead or 'none'} of {pairs} "
            "models an upper confidence bound pays less for it than ε-greedy, and earns more in "
            "the learning bucket."
        )


def _sparse(table: Table1) -> Iterator[str]:
    size = min(table.sizes)
    if size == max(table.sizes):
        return
    row = max(table.rows, key=lambda row: _value(_at(row, size).deploy))
    best = _at(row, size)
    if best.deploy.value is not None:
        yield (
            f"With {100 * size:g} % of the data {row.name} is ahead: {best.deploy.value:.2f}"
            f"{_ends(best.deploy)}, ε-greedy "
            f"{_value(_at(_baseline(table), size).deploy):.2f}."
        )


def _lifted(scatters: Sequence[Scatter]) -> Iterator[str]:
    told = [each for each in scatters if each.mean_lift is not None]
    if len(told) > 1:
        most = max(told, key=lambda each: each.mean_lift or 0.0)
        more = 100 * (most.mean_lift or 0.0)
        yield (
            f"The articles that {most.name} chose most earned {more:.0f} % more from the users it "
            "chose them for than from users at random."
        )


def _searched(ridges: Sequence[Ridge]) -> Iterator[str]:
    known = [each for each in ridges if each.gain.value is not None]
    if known:
        most = max(known, key=lambda each: each.gain.value or 0.0)
        if (most.gain.value or 0.0) <= 0:
            yield "The paper's ridge of 1 left nothing on the table: no other earned more."
            return
        yield (
            f"The paper's ridge of 1 left most on the table with {most.name} at "
            f"{100 * most.size:g} % of the data: a ridge of {most.ridge:g} earned "
            f"{_percent(most.gain.value)} more{_lift_ends(most.gain)}."
        )


def _at(row: Row, size: float) -> Cell:
    return next(cell for cell in row.cells if cell.size == size)


def _baseline(table: Table1) -> Row:
    return next(row for row in table.rows if row.policy == BASELINE)


def _value(number: Number) -> float:
    return float("-inf") if number.value is None else number.value


def _parameters(cell: Cell) -> str:
    return ", ".join(f"{GREEK.get(k, k)} = {v:g}" for k, v in cell.parameters.items())


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _ends(number: Number) -> str:
    """Of a relative CTR."""
    if number.low is None or number.high is None:
        return ""
    return f" (95 % interval {number.low:.2f} to {number.high:.2f})"


def _lift_ends(number: Number) -> str:
    if number.low is None or number.high is None:
        return ""
    return f" (95 % interval {100 * number.low:+.1f} to {100 * number.high:+.1f} %)"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
