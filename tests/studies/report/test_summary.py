"""The summary reports what is significant: a difference by chance is not called one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.studies.small import logs, small_study

import topstory as ts
from topstory.evaluation import mean_lift
from topstory.policies import REGISTRY
from topstory.report import Number
from topstory.report.records import RECOMMENDED
from topstory.studies.report.advice import advice, cost, days, edge
from topstory.studies.report.candidates import Candidate, Candidates, best, without_luck
from topstory.studies.report.summary import _exploration, _not_the_first

POLICIES = ("egreedy", "ucb", "egreedy-disjoint", "linucb-disjoint", "linucb-hybrid")


def anyones(log: ts.EventLog) -> ts.EventLog:
    """The log with its users shuffled: who came tells nothing."""
    order = np.random.default_rng(5).permutation(len(log))
    return replace(log, users=np.asarray(log.users)[order])


def tastes(log: ts.EventLog) -> ts.EventLog:
    """The log with clicks that the first membership decides: who came tells much."""
    random, first = np.random.default_rng(6), np.asarray(log.users)[:, 0] > 0.5
    chance = np.where(first == (log.shown_index % 2 == 0), 0.6, 0.1)
    return replace(log, payoff=(random.random(len(log)) < chance).astype(np.float32))


@cache
def studied(information: str) -> ts.Study:
    change = anyones if information == "nothing" else tastes
    given = {role: change(log) for role, log in logs().items()}
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        return small_study(out, policies=POLICIES, **given)


def sentences(information: str) -> str:
    return "\n".join(studied(information).report().summary)


def candidates(information: str, size: float) -> list[Candidate]:
    return Candidates.of(studied(information)).at(size)


def test_features_without_information_are_not_said_to_help() -> None:
    assert "help:" not in sentences("nothing")
    assert "chose most" not in sentences("nothing")


def test_informative_features_are_said_to_help() -> None:
    assert "User features help: 3 of 3 policies" in sentences("much")
    assert "none of the policies that use features" not in sentences("much")


def test_only_policies_that_know_the_user_are_said_to_lift_articles() -> None:
    (sentence,) = [each for each in sentences("much").splitlines() if "chose most" in each]
    assert sentence.startswith(("The articles that ε-greedy (", "The articles that linucb ("))


def test_an_upper_confidence_bound_is_counted_only_where_it_is_significant() -> None:
    rows = {each.policy: each for each in candidates("nothing", 1.0)}
    sure = sum(
        bool(lift.sure) and (lift.value or 0.0) > 0
        for ours, theirs in (("ucb", "egreedy"), ("linucb-disjoint", "egreedy-disjoint"))
        for lift in [rows[ours].over(rows[theirs], "learning")]
    )
    assert f"With {sure or 'none'} of 2 models, an upper confidence bound earns" in sentences(
        "nothing"
    )


def test_a_lift_and_its_reverse_are_the_same_claim() -> None:
    one, *_, other = candidates("much", 1.0)
    lift, reverse = one.over(other), other.over(one)
    assert (1 + (lift.value or 0)) * (1 + (reverse.value or 0)) == pytest.approx(1)
    assert (1 + (lift.low or 0)) * (1 + (reverse.high or 0)) == pytest.approx(1)
    assert lift.sure == reverse.sure


def test_simultaneous_claims_are_no_more_than_those_of_single_intervals() -> None:
    """Of all that is compared, in both studies together."""
    both = [Candidates.of(studied(information)) for information in ("nothing", "much")]
    alone = at_once = 0
    for found in both:
        for (_, size), each in found.tuned.items():
            base = found.tuned["egreedy", size]
            if each is not base:
                low, high = mean_lift(each.buckets["learning"], base.buckets["learning"]).interval
                alone += low > 0 or high < 0
                at_once += bool(each.over(base, "learning").sure)
    assert 0 < at_once < alone


def test_the_advised_policy_is_not_surely_worse_than_any() -> None:
    found = Candidates.of(studied("much"))
    top = found.advised()
    assert top.contextual
    for other in found.at(1.0):
        if other is not top:
            lift = other.over(top)
            assert not (lift.sure and (lift.value or 0) > 0)


def test_the_advice_knows_the_ridges_that_were_searched() -> None:
    study, found = studied("much"), Candidates.of(studied("much")).advised()
    tried = {
        point.parameters.get("ridge", 1.0) for point in study.tunings["linucb-disjoint"].points
    }
    assert tried >= {1.0, 10.0, 100.0}
    sentence = study.report().summary[0]
    assert sentence.startswith(f"Deploy {found.name} with ")
    assert ("ridge = " in sentence) == ("ridge" in found.parameters)


def test_the_winners_luck_is_taken_off() -> None:
    among = candidates("nothing", 1.0)
    top = best(among)
    assert (without_luck(among)[top].value or 0) < (top.ctr().value or 0)


def test_the_cost_of_exploring_is_in_clicks_and_in_the_total() -> None:
    top = Candidates.of(studied("much")).advised()
    deploy, learn = (
        sum(bucket.payoff for bucket in top.buckets[name])
        / sum(bucket.trials for bucket in top.buckets[name])
        for name in ("deployment", "learning")
    )
    assert top.exploration.clicks.value == pytest.approx(100_000 * 0.1 * (deploy - learn))
    (sentence,) = cost(top)
    clicks = top.exploration.clicks
    assert (f"that costs {clicks.value:,.0f} clicks" in sentence) == (clicks.interval.low > 0)
    random = deploy / (top.ctr().value or 0)
    assert top.total.value == pytest.approx((0.9 * deploy + 0.1 * learn) / random, rel=1e-3)
    assert f"earn {top.total.value:.2f} times" in sentence


def test_every_cell_of_table_1_has_its_cost_and_total() -> None:
    found = Candidates.of(studied("much"))
    for row in studied("much").report().table.rows:
        for cell in row.cells:
            one = found.tuned[row.policy, cell.size]
            apart = (cell.deploy.value or 0) - (cell.learn.value or 0)  # relative CTRs
            assert cell.cost == pytest.approx(10_000 * apart * one.random_rate, rel=1e-3, abs=0.1)
            assert cell.total == one.total.value


def test_the_edge_of_what_was_tried_is_said() -> None:
    top = Candidates.of(studied("much")).advised()  # of two values, each is at the edge
    (sentence,) = edge(top)
    assert sentence.startswith(("Its α ", "Its ε ", "Its ridge "))
    assert not list(edge(replace(top, at_edge=())))


def test_a_log_without_days_does_not_say_how_they_differ() -> None:
    (sentence,) = days(Candidates.of(studied("much")).advised())
    assert "how much days differ is not known" in sentence


def test_the_picture_and_the_sentences_are_one_answer() -> None:
    study = studied("much")
    found, report = Candidates.of(study), study.report()
    answer, top = report.answer, found.advised()
    assert report.summary[:3] == answer.sentences
    assert answer.recommended == top.policy
    first = answer.dots[0].policy == top.policy
    assert ("in the picture" in "\n".join(report.summary)) == (not first)
    for each in found.at(1.0):  # whichever were recommended
        said = "".join(_not_the_first(found.at(1.0), each))
        assert bool(said) == (each.policy != answer.dots[0].policy and each.beats_random)
        assert not said or said.startswith(f"{answer.dots[0].name} stands above {each.name} in")
    assert [dot.mark for dot in answer.dots].count(RECOMMENDED) == 1
    values = [dot.value.value or 0 for dot in answer.dots]
    assert values == sorted(values, reverse=True)
    (dot,) = [each for each in answer.dots if each.policy == top.policy]
    assert f"brings {dot.value.value:,.0f} clicks in 100,000 visits" in answer.sentences[1]
    assert f"random articles bring {answer.reference_value:,.0f}:" in answer.sentences[1]
    log = logs()["evaluation"]
    assert answer.reference_value == pytest.approx(1e5 * tastes(log).payoff.mean(), rel=0.02)
    for other in found.at(1.0):
        marked = next(each.mark for each in answer.dots if each.policy == other.policy)
        surely = top is not other and top.over(other).sure
        assert bool(marked) == (not surely)


def test_where_nothing_is_better_than_random_no_policy_is_marked() -> None:
    answer = studied("nothing").report().answer
    if answer.sentences[0].startswith("Deploy none"):
        assert answer.recommended is None
    else:
        assert answer.recommended is not None


def _advice(
    deploy: tuple[float, float, float], lift: tuple[float, float, float], sure: bool
) -> list[str]:
    """What is advised of two policies, the second of which has that CTR and that lift."""

    class Fake:
        parameters: ClassVar[dict[str, float]] = {"alpha": 0.3}
        random_rate = 0.04
        binary = True

        def __init__(self, policy: str, ctr: Number) -> None:
            self.policy, self._ctr = policy, ctr
            self.name = REGISTRY[policy].paper

        def ctr(self, bucket: str = "") -> Number:
            return self._ctr

        @property
        def beats_random(self) -> bool:
            return (self._ctr.low or 0) > 1

        def over(self, other: object, bucket: str = "") -> Number:
            return Number(*lift, sure)

    fakes: Any = [Fake("egreedy", Number(0.9, 0.8, 1.0)), Fake("ucb", Number(*deploy))]
    return list(advice(fakes, fakes[1], Number(*deploy)))


def test_what_is_not_significantly_better_than_random_is_not_advised() -> None:
    assert _advice((0.98, 0.88, 1.09), (0.1, 0.05, 0.2), True) == [
        "Deploy none of them yet: no policy is significantly better than random articles.",
        "The best, ucb with α = 0.3, brings 3,920 clicks in 100,000 visits where random articles "
        "bring 4,000: 2.0 % less (95 % interval −12.0 to +9.0 %).",
        "A longer log may show more.",
    ]


def test_what_is_not_surely_better_than_the_simplest_says_so() -> None:
    sentences = _advice((1.5, 1.4, 1.6), (0.02, -0.01, 0.05), False)
    assert sentences[0] == "Deploy ucb with α = 0.3."
    assert sentences[2].startswith(
        "It surely beats random articles, and not surely ε-greedy: 2.0 % more (simultaneous 95 % "
        "interval −1.0 to +5.0 %)"
    )


def test_the_best_is_advised_with_its_parameter_its_lift_and_how_sure_that_is() -> None:
    assert _advice((1.5, 1.4, 1.6), (0.1, 0.05, 0.2), True) == [
        "Deploy ucb with α = 0.3.",
        "It brings 6,000 clicks in 100,000 visits where random articles bring 4,000: 50.0 % more "
        "(95 % interval +40.0 to +60.0 %).",
        "It surely beats random articles, and ε-greedy by 10.0 % (simultaneous 95 % interval +5.0 "
        "to +20.0 %); every other policy is surely worse.",
    ]


@pytest.mark.parametrize(
    ("value", "sure", "words"),
    [
        (0.1, True, "An upper confidence bound earns significantly more than ε-greedy in the"),
        (-0.1, True, "An upper confidence bound earns significantly less than ε-greedy in the"),
        (0.1, False, "an upper confidence bound and ε-greedy do not differ significantly"),
    ],
)
def test_a_single_model_is_not_counted(value: float, sure: bool, words: str) -> None:
    class Fake:
        def __init__(self, policy: str) -> None:
            self.policy = policy

        def ctr(self, bucket: str = "") -> Number:
            return Number(1.5)

        def over(self, other: object, bucket: str = "") -> Number:
            assert bucket == "learning"
            return Number(value if self.policy == "ucb" else -value, sure=sure)

    fakes: Any = [Fake("egreedy"), Fake("ucb")]
    (sentence,) = _exploration(fakes)
    assert words in sentence
    assert "models" not in sentence
