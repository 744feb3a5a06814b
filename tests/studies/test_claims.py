"""How often a study is right, counted over small studies of worlds whose truth is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.claims import (
    LEAST_COVERED,
    MOST_CLAIMED,
    MOST_LOST,
    MOST_WRONG,
    SmallWorld,
    count,
)

import topstory as ts
from topstory.studies.report.candidates import Candidates

pytestmark = pytest.mark.long


def at_most(share: float, studies: int) -> int:
    """What is allowed of so many: the target and two standard deviations of counting."""
    return int(studies * share + 2 * (studies * share * (1 - share)) ** 0.5)


def test_where_nothing_differs_hardly_a_study_claims_a_difference() -> None:
    """A study that errs at the target's rate fails this in 5 % of choices of seeds."""
    counted = count("equal", worlds=4, studies=15, paths=2)["study"]
    assert counted.studies == 60
    assert counted.claiming <= at_most(MOST_CLAIMED, counted.studies)
    assert counted.studies - counted.covered <= at_most(1 - LEAST_COVERED, counted.studies)


@pytest.mark.parametrize("kind", ["articles", "users"])
def test_what_is_sure_is_true_and_the_best_is_not_flattered(kind: str) -> None:
    counted = count(kind, worlds=4, studies=10, paths=30)["study"]
    assert counted.sure >= 20
    assert counted.wrong <= at_most(MOST_WRONG, counted.sure)
    assert counted.studies - counted.covered <= at_most(1 - LEAST_COVERED, counted.studies)
    assert counted.lost / counted.choices <= MOST_LOST


def test_worlds_are_what_they_are_called() -> None:
    equal, articles, users = (
        SmallWorld(kind, 3).chances for kind in ("equal", "articles", "users")
    )
    assert equal.std() < 1e-12
    assert articles.std(axis=0).max() < 1e-12 < articles.std(axis=1).min()
    assert users.std(axis=0).min() > 0


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> list[ts.Study]:
    """The demo in five worlds: a quarter of an hour on two cores."""
    folder: Path = tmp_path_factory.mktemp("demos")
    return [ts.study(folder / f"{seed}", seed=seed) for seed in range(5)]


def test_five_demos_agree_on_which_policy_to_run(demos: list[ts.Study]) -> None:
    for study in demos:
        assert study.report().summary[0].startswith("Deploy linucb (hybrid, prior) with α = ")
        assert study.advised()[0] == "linucb-hybrid-prior"


def test_what_a_demo_recommends_is_within_one_percent_of_the_best(demos: list[ts.Study]) -> None:
    for study in demos:
        found = Candidates.of(study)
        best = max(each.truth() or 0.0 for each in found.at(1.0))
        assert (found.advised().truth() or 0.0) >= 0.99 * best
