"""The advice of a study: which policy to run, what it earns and costs, and how certain that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topstory.evaluation.comparison import BASELINE
from topstory.evaluation.exploration import VISITS
from topstory.policies.registry import SYMBOLS
from topstory.report import Number
from topstory.report.wording import amount
from topstory.studies.logs.warnings import join_names
from topstory.studies.report.candidates import LEARNING, Candidate, significant, value
from topstory.studies.report.days import spread


def advice(all_data: Sequence[Candidate], top: Candidate, honest: Number) -> Iterator[str]:
    """What to deploy, what that brings, and how sure that is and what else is as good.

    `honest` is its relative CTR, with the luck of being chosen taken off.
    """
    named = with_parameters(top)
    if top.ctr().value is None or honest.value is None:
        yield "Too few clicks to recommend a policy: replay a longer log."
        return
    if not any(each.beats_random for each in all_data):
        yield "Deploy none of them yet: no policy is significantly better than random articles."
        yield f"The best, {named}, {_brings(top, honest)}."
        yield "A longer log may show more."
        return
    yield f"Deploy {named}."
    yield f"It {_brings(top, honest)}."
    yield _how_sure(all_data, top)


def _brings(top: Candidate, honest: Number) -> str:
    """Clicks in so many visits, beside those of random articles."""
    brought, random = (VISITS * top.random_rate * each for each in (value(honest), 1.0))
    unit = "clicks" if top.binary else "of payoff"
    more = f"{percent(abs(value(honest) - 1))} {'more' if value(honest) >= 1 else 'less'}"
    if honest.low is not None and honest.high is not None:
        low, high = (
            f"{100 * (end - 1):+.1f}".replace("-", "−") for end in (honest.low, honest.high)
        )
        more += f" (95 % interval {low} to {high} %)"
    return (
        f"brings {amount(brought)} {unit} in {VISITS:,} visits where random articles bring "
        f"{amount(random)}: {more}"
    )


def _how_sure(all_data: Sequence[Candidate], top: Candidate) -> str:
    """Beside random articles, beside ε-greedy, and which others may be as good."""
    base, close = baseline(all_data), as_good(all_data, top)
    beats = "It surely beats" if top.beats_random else "It does not surely beat"
    if top is base:
        said = f"{beats} random articles"
    else:
        lift = top.over(base)
        if significant(lift) and top.beats_random:
            said = f"{beats} random articles, and ε-greedy by {percent(lift.value)}"
        elif significant(lift):
            said = f"{beats} random articles, but surely ε-greedy, by {percent(lift.value)}"
        else:
            said = f"{beats} random articles, and not surely ε-greedy: {_signed(lift.value)}"
        said += lift_ends(lift)
    names = [each.name for each in close if each is not base]
    if names:
        return f"{said}; {join_names(names)} may be as good, as far as this log can tell."
    return f"{said}; every other policy is surely worse."


def as_good(all_data: Sequence[Candidate], top: Candidate) -> list[Candidate]:
    """The other policies that may be as good with all data: no difference is significant."""
    return [
        other
        for other in all_data
        if other is not top and other.ctr().value is not None and not significant(top.over(other))
    ]


def edge(top: Candidate) -> Iterator[str]:
    """Where a parameter is the lowest or the highest of those tried."""
    if top.at_edge:
        names = join_names([SYMBOLS.get(name, name) for name in top.at_edge])
        yield (
            f"Its {names} {'is' if len(top.at_edge) == 1 else 'are'} at the edge of what was "
            "tried: values beyond it may be better."
        )


def cost(top: Candidate) -> Iterator[str]:
    """What exploring costs, and what both buckets earn together."""
    learn, total, clicks = top.ctr(LEARNING), top.total, top.exploration.clicks
    if learn.value is None or total.value is None:
        return
    low, high = (f"{end:,.0f}".replace("-", "−") for end in clicks.interval)
    costs = (
        f"that costs {clicks.value:,.0f} clicks in {VISITS:,} visits (95 % interval {low} to "
        f"{high})"
        if clicks.interval.low > 0
        else f"that costs no clicks for sure in {VISITS:,} visits (95 % interval {low} to {high})"
    )
    yield (
        f"While it learns it earns {learn.value:.2f}{ends(learn)}. With "
        f"{100 * top.learning_share:g} % of the traffic learning, {costs}, and both buckets "
        f"together earn {total.value:.2f} times as much as random articles{ends(total)}."
    )


def truth(top: Candidate, all_data: Sequence[Candidate]) -> Iterator[str]:
    """What the simulator knows, if it made the log."""
    known = {each: true for each in all_data if (true := each.truth()) is not None}
    if top in known:
        most = max(known, key=lambda each: known[each])
        yield (
            f"The log is simulated, so the truth is known: in deployment {top.name} truly earns "
            f"{known[top]:.2f}, and the best of all policies, {most.name}, {known[most]:.2f}."
        )


def paths(top: Candidate) -> Iterator[str]:
    """Where its learning paths disagree, so that their mean is no promise for one of them."""
    if top.path_ends is not None:
        low, high = top.path_ends
        yield (
            f"The learning paths of {top.name} disagree: they earned {low:.2f} to {high:.2f}. On "
            "some it finds the best articles, on others it does not, and a site gets one path. It "
            "should explore more, or learn from more."
        )


def days(top: Candidate) -> Iterator[str]:
    """What the interval is not."""
    sd = spread(top.days)
    if sd is None:
        yield (
            "Intervals are for the time of this log. It has no two whole days, so how much days "
            "differ is not known; another day's value may well lie outside."
        )
        return
    ctrs = [ctr for _, ctr in top.days]
    yield (
        f"Intervals are for the days of this log: {top.name} earned {min(ctrs):.2f} to "
        f"{max(ctrs):.2f} on its {len(ctrs)} days (standard deviation {sd:.2f}), and another day's "
        "value may well lie outside."
    )


def baseline(among: Sequence[Candidate]) -> Candidate:
    """Plain ε-greedy, which lifts are over."""
    return next(each for each in among if each.policy == BASELINE)


def with_parameters(candidate: Candidate) -> str:
    """Its name and its parameters."""
    numbers = ", ".join(f"{SYMBOLS.get(k, k)} = {v:g}" for k, v in candidate.parameters.items())
    return f"{candidate.name} with {numbers}"


def _signed(share: float | None) -> str:
    """A difference in words.

    >>> _signed(0.021), _signed(-0.021)
    ('2.1 % more', '2.1 % less')
    """
    return f"{percent(abs(share or 0.0))} {'less' if (share or 0.0) < 0 else 'more'}"


def percent(share: float | None) -> str:
    """A share with one decimal."""
    return "–" if share is None else f"{100 * share:.1f} %"


def ends(number: Number) -> str:
    """The interval of a relative CTR."""
    if number.low is None or number.high is None:
        return ""
    return f" (95 % interval {number.low:.2f} to {number.high:.2f})"


def lift_ends(number: Number) -> str:
    """The interval of a lift."""
    if number.low is None or number.high is None:
        return ""
    low, high = (f"{100 * end:+.1f}".replace("-", "−") for end in (number.low, number.high))
    return f" (simultaneous 95 % interval {low} to {high} %)"
