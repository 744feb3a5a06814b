"""A study whose logs cannot answer what it is asked warns, and says what to do about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.studies.small import logs, small_study

import topstory as ts
from topstory.evaluation import NotUniformWarning
from topstory.studies import StudyWarning


def study(out: Path, change: Any, policies: list[str], **settings: Any) -> ts.Study:
    given = {role: change(log) for role, log in logs().items()}
    one: dict[str, Any] = {"sizes": [1.0], "epsilons": [0.1], "alphas": [0.3]}
    return small_study(out, policies=policies, **{**one, **given, **settings})


def constant(log: ts.EventLog) -> ts.EventLog:
    return replace(log, users=np.ones((len(log), 1), np.float32))


def featureless(log: ts.EventLog) -> ts.EventLog:
    return replace(log, article_table=replace(log.article_table, features=None))


def unclicked(log: ts.EventLog) -> ts.EventLog:
    return replace(log, payoff=0 * log.payoff)


@pytest.mark.parametrize(
    ("change", "policies", "words"),
    [
        (
            constant,
            ["egreedy", "ucb-seg", "linucb-disjoint"],
            "contexts hold only the constant, so ucb-seg and linucb-disjoint know no more about "
            "the user.* give logs with contexts, or .* --exploration .*--policy egreedy,ucb",
        ),
        (
            featureless,
            ["egreedy", "linucb-hybrid"],
            "articles have no features, so linucb-hybrid .* give article features",
        ),
        (
            unclicked,
            ["egreedy", "ucb"],
            "the tuning log has no clicks, so no value of a parameter is known to be",
        ),
    ],
)
def test_what_cannot_be_learned_is_a_warning_and_in_the_report(
    tmp_path: Path, change: Any, policies: list[str], words: str
) -> None:
    with pytest.warns(StudyWarning, match=words) as caught:
        found = study(tmp_path / "out", change, policies)
    assert len(caught) == 1
    (sentence,) = found.report().warnings
    assert sentence.lower() == f"{caught[0].message}.".lower()
    assert sentence[0].isupper()
    again = study(tmp_path / "out", change, policies)  # nothing is left to run, or to warn of
    assert again.report().warnings == found.report().warnings


@pytest.mark.parametrize(
    ("change", "policies"), [(constant, ["egreedy", "ucb"]), (featureless, ["linucb-disjoint"])]
)
def test_policies_that_need_no_features_give_no_warning(
    tmp_path: Path, change: Any, policies: list[str]
) -> None:
    assert study(tmp_path / "out", change, policies).report().warnings == ()


def test_a_log_that_is_not_uniform_is_named(tmp_path: Path) -> None:
    tuning = logs()["tuning"]
    kept = (tuning.position == 0) | (np.arange(len(tuning)) % 3 == 0)
    with pytest.warns(NotUniformWarning, match="^the tuning log's articles were not shown unif"):
        found = small_study(tmp_path / "out", policies=["ucb"], sizes=[1.0], tuning=tuning[kept])
    (warning,) = found.report().warnings
    assert warning.startswith("The tuning log: Not fit for replay")


def test_a_log_too_short_for_warm_offsets_is_refused(tmp_path: Path) -> None:
    few: dict[str, Any] = {"tuning": logs()["tuning"][:9], "exploration": None}
    with pytest.raises(ValueError, match=r"the tuning log's 9 events .* give an exploration log"):
        small_study(tmp_path / "out", **few)
    assert not (tmp_path / "out").exists()
    small_study(tmp_path / "out", policies=["ucb"], **few)  # which needs no offsets


@pytest.mark.parametrize("wrong", [{"alphas": [-1]}, {"epsilons": [3]}, {"sizes": [0]}])
def test_wrong_settings_leave_no_folder_behind(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"got -1\.0|got 3\.0|got 0\.0"):
        small_study(tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_refused_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="which is not part of a study"):
        small_study(tmp_path, policies=["ucb"], sizes=[1.0])
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
