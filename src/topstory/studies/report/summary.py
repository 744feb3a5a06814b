"""What a study says, in words: which policy to deploy, what it earns, and how sure that is.

One is said to earn more than another only where the whole interval of the lift, seed by seed on the
same log, is above 0; that the intervals do not allow for many comparisons the report says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from topstory.evaluation.comparison import BASELINE
from topstory.report import Number, Ridge, Scatter
from topstory.studies.logs.warnings import listed
from topstory.studies.report.contenders import (
    LEARNING,
    Contender,
    best,
    contenders,
    omniscient,
    surely,
    value,
)

if TYPE_CHECKING:
    from topstory.studies.result import Study

GREEK = {"epsilon": "ε", "alpha": "α"}


def summary(study: Study, scatters: Sequence[Scatter], ridges: Sequence[Ridge]) -> tuple[str, ...]:
    """Sentences, the most important first."""
    sizes = study.settings.sizes
    most, fewest = contenders(study, max(sizes)), contenders(study, min(sizes))
    return tuple(
        sentence
        for sentences in (
            advice(most),
            _features(most),
            _hindsight(study, most),
            _exploring(most),
            _sparse(fewest, min(sizes)) if len(set(sizes)) > 1 else (),
            _lifted(most, scatters),
            _searched(ridges),
        )
        for sentence in sentences
    )


def advice(all_data: Sequence[Contender]) -> Iterator[str]:
    """Which policy to deploy, with what parameter, what it earns, and how sure that is."""
    found, base = best(all_data), _baseline(all_data)
    deploy, learn, named = found.ctr(), found.ctr(LEARNING), _named(found)
    if deploy.value is None:
        yield "Too few clicks to say which policy to deploy: replay a longer log."
        return
    if deploy.low is None or deploy.low <= 1:
        yield (
            f"No policy is surely better than showing articles at random: the best, {named}, "
            f"earned {deploy.value:.2f} times as much{_ends(deploy)}. A longer log may tell."
        )
        return
    earned = (
        f"its deployment bucket earned {deploy.value:.2f} times what random articles do"
        f"{_ends(deploy)}"
    )
    if found is base:
        yield f"Deploy {named}: {earned}, and no other policy earned more."
        return
    lift = found.over(base)
    if not surely(lift):
        yield (
            f"No policy is surely better than {_named(base)}, which earned "
            f"{value(base.ctr()):.2f} times what random articles do{_ends(base.ctr())}: the best, "
            f"{named}, earned {_percent(lift.value)} more{_lift_ends(lift)}."
        )
        return
    yield (
        f"Deploy {named}: {earned}, {_percent(lift.value)} more than ε-greedy's{_lift_ends(lift)}."
    )
    if learn.value is not None:
        yield (
            f"The traffic on which it explores and learns earned {learn.value:.2f}{_ends(learn)}."
        )
    close = [
        _with_ridge(other)
        for other in all_data
        if other is not found and other is not base and not surely(found.over(other))
    ]
    if close:
        yield (
            f"{listed(close)} may be as good: the interval of the lift over "
            f"{'that' if len(close) == 1 else 'each of them'} does not lie above 0."
        )


def _features(all_data: Sequence[Contender]) -> Iterator[str]:
    users, plain = _users(all_data), _best_plain(all_data)
    if not users or plain.ctr().value is None:
        return
    sure = [each for each in users if surely(each.over(plain))]
    than = f"the best that does not ({plain.name}, {value(plain.ctr()):.2f})"
    top = best(sure or users)
    lift = top.over(plain)
    by = f"{_with_ridge(top)}, earned {_percent(lift.value)} more{_lift_ends(lift)}"
    if sure:
        yield (
            f"Knowing the user helps: {_count(sure)} of {_count(users)} policies that use features "
            f"surely {'earns' if _count(sure) == 1 else 'earn'} more than {than}; the best, {by}."
        )
    elif (lift.value or 0.0) > 0:
        yield (
            "Whether knowing the user helps is not sure here: of the policies that use features, "
            f"none surely earns more than {than}; the best, {by}."
        )
    else:
        yield (
            "Features of users did not help here: no policy that uses them earned more than "
            f"{than}."
        )


def _hindsight(study: Study, all_data: Sequence[Contender]) -> Iterator[str]:
    users = _users(all_data)
    if users and (known := omniscient(study, users[0]).ctr()).value is not None:
        above = _count([each for each in users if surely(each.over(omniscient(study, each)))])
        yield (
            f"Always showing the article that proved best for everyone would have earned "
            f"{known.value:.2f}, in hindsight; {above or 'none'} of the policies that use features "
            f"surely {'earn' if above > 1 else 'earns'} more."
        )


def _exploring(all_data: Sequence[Contender]) -> Iterator[str]:
    rows = {each.policy: each for each in all_data if "ridge" not in each.parameters}
    more = less = pairs = 0
    for name, row in rows.items():
        guided = rows.get(name.replace("egreedy", "ucb")) or rows.get(
            name.replace("egreedy", "linucb")
        )
        if name.startswith("egreedy") and guided is not None and row.ctr(LEARNING).value:
            pairs += 1
            more += surely(guided.over(row, LEARNING))
            less += surely(row.over(guided, LEARNING))
    if not pairs:
        return
    begin = "While it learns, a policy pays for exploring: "
    better = "an upper confidence bound surely pays less for it than ε-greedy, and earns more in"
    if pairs > 1:
        yield (
            f"{begin}with {more or 'none'} of {pairs} models {better} the learning bucket"
            + (f"; with {less} it surely earns less." if less else ".")
        )
    elif more:
        yield f"{begin}{better} the learning bucket."
    elif less:
        yield (
            f"{begin}an upper confidence bound surely earns less than ε-greedy in the learning "
            "bucket."
        )
    else:
        yield (
            f"{begin}whether an upper confidence bound earns more than ε-greedy in the learning "
            "bucket is not sure here."
        )


def _sparse(little: Sequence[Contender], size: float) -> Iterator[str]:
    found, base, share = best(little), _baseline(little), f"With {100 * size:g} % of the data"
    deploy = found.ctr()
    if deploy.value is None:
        return
    earned = f"{deploy.value:.2f}{_ends(deploy)}"
    if found is base:
        yield f"{share} no policy earned more than ε-greedy: {earned}."
        return
    lift = found.over(base)
    by = f"{_percent(lift.value)} more than ε-greedy{_lift_ends(lift)}"
    if surely(lift):
        yield f"{share} {_with_ridge(found)} is ahead: {earned}, {by}."
    else:
        yield (
            f"{share} no policy is surely ahead of ε-greedy: the best, {_with_ridge(found)}, "
            f"earned {earned}, {by}."
        )


def _lifted(all_data: Sequence[Contender], scatters: Sequence[Scatter]) -> Iterator[str]:
    """Of policies that know the user, and surely earn by it: else, articles' lifts are luck."""
    plain = _best_plain(all_data)
    sure = {each.policy for each in _users(all_data) if surely(each.over(plain))}
    told = [each for each in scatters if each.mean_lift is not None and each.policy in sure]
    if told:
        most = max(told, key=lambda each: each.mean_lift or 0.0)
        more = 100 * (most.mean_lift or 0.0)
        if more > 0:
            yield (
                f"The articles that {most.name} chose most earned {more:.0f} % more from the users "
                "it chose them for than from users at random."
            )


def _searched(ridges: Sequence[Ridge]) -> Iterator[str]:
    known = [each for each in ridges if each.gain.value is not None]
    if not known:
        return
    sure = [each for each in known if surely(each.gain)]
    most = max(sure or known, key=lambda each: value(each.gain))
    if value(most.gain) <= 0:
        yield "The paper's ridge of 1 left nothing on the table: no other earned more."
        return
    where = (
        f"{most.name} at {100 * most.size:g} % of the data: a ridge of {most.ridge:g} earned "
        f"{_percent(most.gain.value)} more{_lift_ends(most.gain)}."
    )
    if sure:
        yield (
            f"The paper's ridge of 1 surely left something on the table in {len(sure)} of "
            f"{len(known)} cells, most with {where}"
        )
    else:
        yield f"The paper's ridge of 1 left nothing on the table for sure; perhaps with {where}"


def _users(among: Sequence[Contender]) -> list[Contender]:
    return [each for each in among if each.contextual and each.ctr().value is not None]


def _count(among: Sequence[Contender]) -> int:
    """Policies: one with two ridges counts once."""
    return len({each.policy for each in among})


def _best_plain(among: Sequence[Contender]) -> Contender:
    return best([each for each in among if not each.contextual])


def _baseline(among: Sequence[Contender]) -> Contender:
    return next(each for each in among if each.policy == BASELINE)


def _named(found: Contender) -> str:
    numbers = ", ".join(f"{GREEK.get(k, k)} = {v:g}" for k, v in found.parameters.items())
    return f"{found.name} with {numbers}"


def _with_ridge(found: Contender) -> str:
    ridge = found.parameters.get("ridge")
    return found.name if ridge is None else f"{found.name} with a ridge of {ridge:g}"


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
    low, high = (f"{100 * end:+.1f}".replace("-", "−") for end in (number.low, number.high))
    return f" (95 % interval {low} to {high} %)"
