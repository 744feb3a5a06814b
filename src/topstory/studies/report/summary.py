"""The summary of a study: which policy to deploy, what it earns, and how certain that is.

The summary reports a difference only if its paired 95 % interval excludes 0; otherwise it says that
the result is not significant. Intervals do not correct for many comparisons; the report says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topstory.evaluation.comparison import BASELINE
from topstory.policies.registry import EXPLORERS, REGISTRY, SYMBOLS
from topstory.report import Number, Ridge, Scatter
from topstory.studies.logs.warnings import join_names
from topstory.studies.report.candidates import (
    LEARNING,
    Candidate,
    Candidates,
    best,
    significant,
    value,
)


def summary(
    candidates: Candidates,
    sizes: Sequence[float],
    scatters: Sequence[Scatter],
    ridges: Sequence[Ridge],
) -> tuple[str, ...]:
    """Sentences, the most important first."""
    most, fewest = candidates.at(max(sizes)), candidates.at(min(sizes))
    return tuple(
        sentence
        for sentences in (
            advice(most),
            _features(most),
            _hindsight(candidates, most),
            _exploration(most),
            _sparse(fewest, min(sizes)) if len(set(sizes)) > 1 else (),
            _lifted(most, scatters),
            _ridges(ridges),
        )
        for sentence in sentences
    )


def advice(all_data: Sequence[Candidate]) -> Iterator[str]:
    """Which policy to deploy, with which parameter, what it earns, and how certain that is."""
    top, base = best(all_data), _baseline(all_data)
    deploy, learn, named = top.ctr(), top.ctr(LEARNING), _with_parameters(top)
    if deploy.value is None:
        yield "Too few clicks to recommend a policy: replay a longer log."
        return
    if deploy.low is None or deploy.low <= 1:
        yield (
            f"No policy is significantly better than random articles. The best, {named}, earned "
            f"{deploy.value:.2f} times as much{_ends(deploy)}. A longer log may show more."
        )
        return
    earned = (
        f"its deployment bucket earned {deploy.value:.2f} times as much as random articles"
        f"{_ends(deploy)}"
    )
    if top is base:
        yield f"Deploy {named}: {earned}, and no other policy earned more."
        return
    lift = top.over(base)
    if not significant(lift):
        yield (
            f"No policy is significantly better than {_with_parameters(base)}, which earned "
            f"{value(base.ctr()):.2f} times as much as random articles{_ends(base.ctr())}. The "
            f"best, {named}, earned {_percent(lift.value)} more{_lift_ends(lift)}."
        )
        return
    yield f"Deploy {named}: {earned}, {_percent(lift.value)} more than ε-greedy{_lift_ends(lift)}."
    if learn.value is not None:
        yield f"Its learning bucket, which explores, earned {learn.value:.2f}{_ends(learn)}."
    close = [
        _with_ridge(other)
        for other in all_data
        if other is not top and other is not base and not significant(top.over(other))
    ]
    if close:
        yield (
            f"{join_names(close)} may be as good: the interval of the lift over "
            f"{'it' if len(close) == 1 else 'each of them'} includes 0."
        )


def _features(all_data: Sequence[Candidate]) -> Iterator[str]:
    users, plain = _users(all_data), _best_plain(all_data)
    if not users or plain.ctr().value is None:
        return
    better = [each for each in users if significant(each.over(plain))]
    than = f"the best that does not ({plain.name}, {value(plain.ctr()):.2f})"
    top = best(better or users)
    lift = top.over(plain)
    by = f"{_with_ridge(top)}, earned {_percent(lift.value)} more{_lift_ends(lift)}"
    if better:
        yield (
            f"User features help: {_count(better)} of {_count(users)} policies that use them "
            f"{'earns' if _count(better) == 1 else 'earn'} significantly more than {than}. The "
            f"best, {by}."
        )
    elif (lift.value or 0.0) > 0:
        yield (
            "Whether user features help is not certain here: no policy that uses them earns "
            f"significantly more than {than}. The best, {by}."
        )
    else:
        yield f"User features did not help here: no policy that uses them earned more than {than}."


def _hindsight(candidates: Candidates, all_data: Sequence[Candidate]) -> Iterator[str]:
    users = _users(all_data)
    if users and (known := candidates.omniscient(users[0]).ctr()).value is not None:
        above = _count(
            [each for each in users if significant(each.over(candidates.omniscient(each)))]
        )
        yield (
            "Omniscient, which knows each article's CTR in hindsight but not the user, would have "
            f"earned {known.value:.2f}; {above or 'none'} of the policies that use features "
            f"{'earn' if above > 1 else 'earns'} significantly more."
        )


def _exploration(all_data: Sequence[Candidate]) -> Iterator[str]:
    rows = {
        (REGISTRY[each.policy].model, REGISTRY[each.policy].explorer): each
        for each in all_data
        if "ridge" not in each.parameters
    }
    more = less = pairs = 0
    for (model, explorer), row in rows.items():
        guided = rows.get((model, EXPLORERS["upper-confidence"]))
        unguided = explorer is EXPLORERS["epsilon-greedy"]
        if unguided and guided is not None and row.ctr(LEARNING).value:
            pairs += 1
            more += significant(guided.over(row, LEARNING))
            less += significant(row.over(guided, LEARNING))
    if not pairs:
        return
    begin = "Exploration costs clicks while a policy learns. "
    if pairs > 1:
        yield (
            f"{begin}With {more or 'none'} of {pairs} models, an upper confidence bound earns "
            "significantly more than ε-greedy in the learning bucket"
            + (f"; with {less}, significantly less." if less else ".")
        )
        return
    compared = "significantly more" if more else "significantly less" if less else None
    if compared is None:
        yield (
            f"{begin}In the learning bucket, an upper confidence bound and ε-greedy do not differ "
            "significantly here."
        )
    else:
        yield (
            f"{begin}An upper confidence bound earns {compared} than ε-greedy in the learning "
            "bucket."
        )


def _sparse(little: Sequence[Candidate], size: float) -> Iterator[str]:
    top, base, share = best(little), _baseline(little), f"With {100 * size:g} % of the data,"
    deploy = top.ctr()
    if deploy.value is None:
        return
    earned = f"{deploy.value:.2f}{_ends(deploy)}"
    if top is base:
        yield f"{share} no policy earned more than ε-greedy: {earned}."
        return
    lift = top.over(base)
    by = f"{_percent(lift.value)} more than ε-greedy{_lift_ends(lift)}"
    if significant(lift):
        yield f"{share} {_with_ridge(top)} is best: {earned}, {by}."
    else:
        yield (
            f"{share} no policy is significantly better than ε-greedy. The best, "
            f"{_with_ridge(top)}, earned {earned}, {by}."
        )


def _lifted(all_data: Sequence[Candidate], scatters: Sequence[Scatter]) -> Iterator[str]:
    """Only for policies that earn significantly more by user features; else lifts are chance."""
    plain = _best_plain(all_data)
    better = {each.policy for each in _users(all_data) if significant(each.over(plain))}
    known = [each for each in scatters if each.mean_lift is not None and each.policy in better]
    if known:
        most = max(known, key=lambda each: each.mean_lift or 0.0)
        more = 100 * (most.mean_lift or 0.0)
        if more > 0:
            yield (
                f"The articles that {most.name} chose most earned {more:.0f} % more from the users "
                "it chose them for than from random users."
            )


def _ridges(ridges: Sequence[Ridge]) -> Iterator[str]:
    known = [each for each in ridges if each.gain.value is not None]
    if not known:
        return
    better = [each for each in known if significant(each.gain)]
    most = max(better or known, key=lambda each: value(each.gain))
    if value(most.gain) <= 0:
        yield "No tuned ridge earned more than the paper's ridge of 1."
        return
    where = (
        f"{most.name} at {100 * most.size:g} % of the data: a ridge of {most.ridge:g} earned "
        f"{_percent(most.gain.value)} more{_lift_ends(most.gain)}."
    )
    if better:
        yield (
            f"A tuned ridge is significantly better than the paper's ridge of 1 in {len(better)} "
            f"of {len(known)} cells, most of all for {where}"
        )
    else:
        yield (
            "No tuned ridge is significantly better than the paper's ridge of 1; the largest "
            f"difference is for {where}"
        )


def _users(among: Sequence[Candidate]) -> list[Candidate]:
    return [each for each in among if each.contextual and each.ctr().value is not None]


def _count(among: Sequence[Candidate]) -> int:
    """The number of policies; one with two ridges counts once."""
    return len({each.policy for each in among})


def _best_plain(among: Sequence[Candidate]) -> Candidate:
    return best([each for each in among if not each.contextual])


def _baseline(among: Sequence[Candidate]) -> Candidate:
    return next(each for each in among if each.policy == BASELINE)


def _with_parameters(candidate: Candidate) -> str:
    numbers = ", ".join(f"{SYMBOLS.get(k, k)} = {v:g}" for k, v in candidate.parameters.items())
    return f"{candidate.name} with {numbers}"


def _with_ridge(candidate: Candidate) -> str:
    ridge = candidate.parameters.get("ridge")
    return candidate.name if ridge is None else f"{candidate.name} with a ridge of {ridge:g}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _ends(number: Number) -> str:
    """The interval of a relative CTR."""
    if number.low is None or number.high is None:
        return ""
    return f" (95 % interval {number.low:.2f} to {number.high:.2f})"


def _lift_ends(number: Number) -> str:
    if number.low is None or number.high is None:
        return ""
    low, high = (f"{100 * end:+.1f}".replace("-", "−") for end in (number.low, number.high))
    return f" (95 % interval {low} to {high} %)"
