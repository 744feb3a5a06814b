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
from topstory.report import Number, Ridge
from topstory.studies.report.candidates import Candidate, Candidates, best
from topstory.studies.report.summary import advice, summary

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
        return small_study(out, policies=POLICIES, tune_ridge=information == "much", **given)


def sentences(information: str) -> str:
    return "\n".join(studied(information).report().summary)


def candidates(information: str, size: float) -> list[Candidate]:
    return Candidates.of(studied(information)).at(size)


def test_features_without_information_are_not_said_to_help() -> None:
    """Some policy that uses them is ahead by luck, so that a point estimate would mislead."""
    study = studied("nothing")
    plain = max(study.report().table.rows[:2], key=lambda row: row.cells[0].deploy.value or 0)
    lifts = [
        mean_lift(
            study.buckets(policy, 1.0, "deployment"),
            study.buckets(plain.policy, 1.0, "deployment"),
        )
        for policy in POLICIES[2:]
    ]
    assert max(lift.value for lift in lifts) > 0
    assert max(lift.interval.low for lift in lifts) <= 0
    assert "help:" not in sentences("nothing")
    assert "chose most" not in sentences("nothing")


def test_informative_features_are_said_to_help() -> None:
    assert "User features help: 3 of 3 policies" in sentences("much")
    assert "none of the policies that use features" not in sentences("much")


def test_only_policies_that_know_the_user_are_said_to_lift_articles() -> None:
    (sentence,) = [each for each in sentences("much").splitlines() if "chose most" in each]
    assert sentence.startswith(("The articles that ε-greedy (", "The articles that linucb ("))


def test_an_upper_confidence_bound_is_counted_only_where_it_is_significant() -> None:
    study = studied("nothing")
    sure = sum(
        mean_lift(
            study.buckets(ours, 1.0, "learning"), study.buckets(theirs, 1.0, "learning")
        ).interval.low
        > 0
        for ours, theirs in (("ucb", "egreedy"), ("linucb-disjoint", "egreedy-disjoint"))
    )
    assert f"With {sure or 'none'} of 2 models, an upper confidence bound earns" in sentences(
        "nothing"
    )


def test_the_baseline_is_not_compared_with_itself() -> None:
    assert best(candidates("nothing", 0.05)).policy == "egreedy"
    (sentence,) = [
        s for s in sentences("nothing").splitlines() if s.startswith("With 5 % of the data,")
    ]
    assert sentence.startswith("With 5 % of the data, no policy earned more than ε-greedy: ")


def test_the_advice_knows_the_ridges_that_were_searched() -> None:
    study = studied("much")
    found = best(candidates("much", 1.0))
    ctrs = [row.cells[0].deploy.value or 0 for row in study.report().table.rows]
    ctrs += [each.tuned.value or 0 for each in study.report().ridges if each.size == 1.0]
    assert found.ctr().value == max(ctrs)
    assert any(each.parameters.get("ridge") for each in candidates("much", 1.0))
    sentence = study.report().summary[0]
    assert sentence.startswith(f"Deploy {found.name} with ")
    assert ("ridge = " in sentence) == ("ridge" in found.parameters)


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        (
            [(0.12, -0.02, 0.34), (0.01, -0.1, 0.1)],
            "No tuned ridge is significantly better than the paper's",
        ),
        (
            [(0.12, -0.02, 0.34), (0.03, 0.01, 0.1)],
            "1 of 2 cells, most of all for b at 100 % of the data",
        ),
        (
            [(-0.1, -0.2, 0.0), (-0.01, -0.1, 0.1)],
            "No tuned ridge earned more than the paper's ridge of 1.",
        ),
    ],
)
def test_a_ridge_is_called_better_only_if_it_is_significant(
    gains: list[tuple[float, float, float]], words: str
) -> None:
    one = Number(1.0)
    ridges = [
        Ridge("linucb-disjoint", name, 1.0, 30.0, 0.1, one, one, Number(*gain))
        for name, gain in zip("ab", gains, strict=True)
    ]
    assert words in summary(Candidates.of(studied("nothing")), (1.0,), (), ridges)[-1]


def _advice(deploy: tuple[float, float, float], lift: tuple[float, float, float]) -> str:
    """What is advised of two policies, the second of which has that CTR and that lift."""

    class Fake:
        parameters: ClassVar[dict[str, float]] = {"alpha": 0.3}

        def __init__(self, policy: str, ctr: Number) -> None:
            self.policy, self._ctr = policy, ctr
            self.name = REGISTRY[policy].paper

        def ctr(self, bucket: str = "") -> Number:
            return self._ctr

        def over(self, other: object, bucket: str = "") -> Number:
            return Number(*lift)

    fakes: Any = [Fake("egreedy", Number(0.9, 0.8, 1.0)), Fake("ucb", Number(*deploy))]
    return next(advice(fakes))


def test_what_is_not_significantly_better_than_random_is_not_advised() -> None:
    sentence = _advice((0.98, 0.88, 1.09), (0.1, 0.05, 0.2))
    assert sentence == (
        "No policy is significantly better than random articles. The best, ucb with α = 0.3, "
        "earned 0.98 times as much (95 % interval 0.88 to 1.09). A longer log may show more."
    )


def test_what_is_as_good_as_the_simplest_names_both() -> None:
    sentence = _advice((1.5, 1.4, 1.6), (0.02, -0.01, 0.05))
    assert sentence == (
        "No policy is significantly better than ε-greedy with α = 0.3, which earned 0.90 times as "
        "much as random articles (95 % interval 0.80 to 1.00). The best, ucb with α = 0.3, earned "
        "2.0 % more (95 % interval −1.0 to +5.0 %)."
    )


def test_the_best_is_advised_with_its_parameter_its_lift_and_how_sure_that_is() -> None:
    sentence = _advice((1.5, 1.4, 1.6), (0.1, 0.05, 0.2))
    assert sentence == (
        "Deploy ucb with α = 0.3: its deployment bucket earned 1.50 times as much as random "
        "articles (95 % interval 1.40 to 1.60), 10.0 % more than ε-greedy (95 % interval +5.0 to "
        "+20.0 %)."
    )


@pytest.mark.parametrize(
    ("alpha", "sign", "words"),
    [
        (
            1.0,
            1,
            "An upper confidence bound earns significantly more than ε-greedy in the learning",
        ),
        (
            0.03,
            -1,
            "An upper confidence bound earns significantly less than ε-greedy in the learning",
        ),
        (3.0, 0, "an upper confidence bound and ε-greedy do not differ significantly"),
    ],
)
def test_a_single_model_is_not_counted(tmp_path: Path, alpha: float, sign: int, words: str) -> None:
    one: dict[str, Any] = {"sizes": [1.0], "epsilons": [0.1], "alphas": [alpha]}
    found = small_study(tmp_path / "out", policies=["egreedy", "ucb"], **one)
    low, high = mean_lift(
        *(found.buckets(name, 1.0, "learning") for name in ("ucb", "egreedy"))
    ).interval
    assert (low > 0) - (high < 0) == sign
    (sentence,) = [each for each in found.report().summary if each.startswith("Exploration costs")]
    assert words in sentence
    assert "models" not in sentence
