"""The summary of a study: which policy to run, what it earns, and how certain that is.

The summary reports a difference only if it is sure among all those that were compared (see
`candidates`); otherwise it says that the result is not significant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topstory.report import Scatter
from topstory.studies.report.advice import (
    baseline,
    cost,
    days,
    edge,
    ends,
    lift_ends,
    paths,
    percent,
    truth,
    with_parameters,
)
from topstory.studies.report.candidates import (
    LEARNING,
    Candidate,
    Candidates,
    best,
    explorer_pairs,
    significant,
    value,
    without_luck,
)


def summary(
    candidates: Candidates, sizes: Sequence[float], scatters: Sequence[Scatter]
) -> tuple[str, ...]:
    """What the answer does not say, the most important first."""
    most, fewest = candidates.at(max(sizes)), candidates.at(min(sizes))
    top = candidates.advised()
    return tuple(
        sentence
        for sentences in (
            _not_the_first(most, top),
            edge(top),
            cost(top),
            truth(top, most),
            paths(top),
            days(top),
            _features(most),
            _hindsight(candidates, most),
            _exploration(most),
            _sparse(fewest, min(sizes)) if len(set(sizes)) > 1 else (),
            _lifted(most, scatters),
        )
        for sentence in sentences
    )


def _not_the_first(all_data: Sequence[Candidate], top: Candidate) -> Iterator[str]:
    """Why the recommended policy is not the one that the picture shows first, if it is not."""
    honest = without_luck(all_data)
    first = max(all_data, key=lambda each: value(honest[each]))
    if first is top or not top.beats_random:
        return
    yield (
        f"{first.name} stands above {top.name} in the picture, by no more than may be chance. "
        f"{top.name} is recommended because of all that may be the best it earns most over all "
        "data sizes and both buckets: a site always has new articles, of which it knows little."
    )


def _features(all_data: Sequence[Candidate]) -> Iterator[str]:
    users, plain = _users(all_data), _best_plain(all_data)
    if not users or plain.ctr().value is None:
        return
    better = [each for each in users if significant(each.over(plain))]
    than = f"the best that does not ({plain.name}, {value(plain.ctr()):.2f})"
    top = best(better or users)
    lift = top.over(plain)
    by = f"{with_parameters(top)}, earned {percent(lift.value)} more{lift_ends(lift)}"
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
    rows = {each.policy: each for each in all_data}
    more = less = pairs = 0
    for guided, plain in explorer_pairs(list(rows)):
        if rows[plain].ctr(LEARNING).value:
            pairs += 1
            more += significant(rows[guided].over(rows[plain], LEARNING))
            less += significant(rows[plain].over(rows[guided], LEARNING))
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
    top, base, share = best(little), baseline(little), f"With {100 * size:g} % of the data,"
    deploy = top.ctr()
    if deploy.value is None:
        return
    earned = f"{deploy.value:.2f}{ends(deploy)}"
    if top is base:
        yield f"{share} no policy earned more than ε-greedy: {earned}."
        return
    lift = top.over(base)
    by = f"{percent(lift.value)} more than ε-greedy{lift_ends(lift)}"
    if significant(lift):
        yield f"{share} {with_parameters(top)} is best: {earned}, {by}."
    else:
        yield (
            f"{share} no policy is significantly better than ε-greedy. The best, "
            f"{with_parameters(top)}, earned {earned}, {by}."
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


def _users(among: Sequence[Candidate]) -> list[Candidate]:
    return [each for each in among if each.contextual and each.ctr().value is not None]


def _count(among: Sequence[Candidate]) -> int:
    """The number of policies; one with two ridges counts once."""
    return len({each.policy for each in among})


def _best_plain(among: Sequence[Candidate]) -> Candidate:
    return best([each for each in among if not each.contextual])
