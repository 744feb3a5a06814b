"""A study is its runs: tuned on one log, evaluated on another, recorded as they finish."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array
from tests.studies.small import POLICIES, SIZES, logs, small_study
from tests.worlds import changing_pools, world

import topstory as ts
from topstory.evaluation import Outcome, mean_lift, mean_relative_ctr
from topstory.evaluation.exploration import total_bucket
from topstory.evaluation.replays import run
from topstory.evaluation.replays.replay import replay_unwarned
from topstory.evaluation.tuning.recommendation import TriedPoint, recommend
from topstory.events.columns.contexts import as_contexts
from topstory.features.offset import offset_by
from topstory.models import LinearOffset
from topstory.report import Report
from topstory.report.figures import figures
from topstory.studies.logs.simulated import SCALES
from topstory.studies.logs.sources import default_policies
from topstory.studies.logs.summaries import memberships
from topstory.studies.report import build
from topstory.studies.report.build import build_report
from topstory.studies.run_log import RunLog
from topstory.studies.settings import LEARNERS, STUDIED

ROOT = Path(__file__).parent.parent.parent


def numbers(study: ts.Study) -> dict[Any, Any]:
    """Every number of every run, the time it took aside."""
    return {
        (stage, made): tuple(getattr(o, f) for f in o.__struct_fields__ if f != "seconds")
        for stage, outcomes in (("tuning", study.tuned), ("evaluation", study.evaluated))
        for made, o in outcomes.items()
    }


def without_features(log: ts.EventLog) -> ts.EventLog:
    return replace(log, article_table=replace(log.article_table, features=None))


def _policy(study: ts.Study, name: str, **given: Any) -> ts.Policy:
    numbers: dict[str, Any] = dict(study.chosen(name))
    return ts.policy(name, **numbers, **given)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ts.Study:
    return small_study(tmp_path_factory.mktemp("study") / "out")


def test_the_chosen_parameters_are_read_from_all_points_of_the_tuning_log(study: ts.Study) -> None:
    points = []
    for tuning in study.tunings.values():
        for point in tuning.points:
            total = mean_relative_ctr(
                [total_bucket(o.bucket("deployment"), o.bucket("learning")) for o in point.outcomes]
            )
            width = (total.interval.high - total.interval.low) / (4 * total.value)
            given = (point.policy, point.size, point.parameters, total.value, width**2)
            points.append(TriedPoint(*given, point.learning.value))
    for (policy, size), found in recommend(points).items():
        assert study.chosen(policy, size) == found.parameters
    log, alpha = logs()["tuning"], study.tunings["ucb"].curve(1.0)[0].parameters["alpha"]
    one = ts.replay(ts.policy("ucb", alpha=alpha), log).deployment.relative_ctr
    assert study.tunings["ucb"].curve(1.0)[0].deployment.value == pytest.approx(one)


def test_a_cell_is_the_replays_of_the_evaluation_log_with_them(study: ts.Study) -> None:
    log = logs()["evaluation"]
    results, bases = (
        [ts.replay(_policy(study, name, seed=seed), log, seed=seed) for seed in range(20)]
        for name in ("ucb", "egreedy")
    )
    row = next(r for r in study.report().table.rows if r.policy == "ucb")
    for bucket, number, lift in (
        ("deployment", row.cells[0].deploy, row.cells[0].deploy_lift),
        ("learning", row.cells[0].learn, row.cells[0].learn_lift),
    ):
        ours = [getattr(result, bucket) for result in results]
        theirs = [getattr(result, bucket) for result in bases]
        assert number.value == pytest.approx(mean_relative_ctr(ours).value)
        assert lift.value == pytest.approx(mean_lift(ours, theirs).value, rel=0.05)


def test_warm_policies_know_what_exploration_taught(study: ts.Study) -> None:
    given = logs()
    offset = ts.fit_warm_offset(given["exploration"]).table(given["evaluation"].articles)
    policy = _policy(study, "egreedy-warm", offset=offset)
    result = ts.replay(policy, given["evaluation"])
    assert study.outcomes("egreedy-warm")[0].bucket("learning").ctr == result.learning.ctr


def test_policies_with_a_prior_know_what_exploration_taught(tmp_path: Path) -> None:
    names = ("linucb-disjoint", "linucb-disjoint-prior")
    found = small_study(tmp_path / "out", policies=names, sizes=(1.0,))
    given, name = logs(), "linucb-disjoint-prior"
    prior = ts.fit_prior(given["exploration"])
    cell = next(run for run in found.evaluated if run.policy == name)
    assert "ridge" not in dict(cell.parameters)  # the prior knows it
    played = ts.replay(_policy(found, name, prior=prior), given["evaluation"])
    assert found.evaluated[cell].bucket("deployment").ctr == played.deployment.ctr
    plain = next(run for run in found.evaluated if run.policy == "linucb-disjoint")
    played = ts.replay(_policy(found, "linucb-disjoint"), given["evaluation"])
    assert found.evaluated[plain].bucket("deployment").ctr == played.deployment.ctr
    assert "linucb (disjoint, prior)" in found.table1()["algorithm"].to_pylist()


def test_warm_offsets_are_bilinear_where_a_log_allows_it_and_the_report_says_so(
    study: ts.Study,
) -> None:
    explored = logs()["exploration"]
    ours, theirs = (
        fit(explored).table(explored.articles)
        for fit in (ts.fit_warm_offset, ts.fit_bilinear_offset)
    )
    assert all((ours[article] == theirs[article]).all() for article in explored.articles)
    wanted = f"bilinear logistic regression on {len(explored):,} events"
    assert dict(study.report().settings)["warm offsets"] == wanted
    for other in (
        without_features(explored),
        replace(explored, payoff=2 * explored.payoff),  # no clicks
        replace(explored, payoff=0 * explored.payoff),  # not a single one
        replace(explored, users=as_contexts(csr_array(np.asarray(explored.users) > 0.5))),
    ):
        assert offset_by(other) == "least squares"
        assert isinstance(ts.fit_warm_offset(other), LinearOffset)


def test_figure_5_counts_every_user_once() -> None:
    users = [[0.9, 0.1, 1.0], [0.5, 0.5, 1.0]]
    who = [0, 1, 1, 1]
    log = ts.EventLog.from_arrays(users, [["a"]], [0] * 4, ["a"] * 4, [0, 1, 0, 0], visitor=who)
    found = memberships(log)
    assert found is not None
    assert (found.above_half, sum(found.counts)) == (0.5, 2)


def test_a_ridge_at_the_edge_of_what_was_tried_is_widened(tmp_path: Path) -> None:
    given: dict[str, Any] = {"policies": ["linucb-hybrid"], "sizes": [1.0], "values": {}}
    given |= {"alphas": None, "epsilons": [0.1]}
    found = small_study(tmp_path / "out", **given)
    hybrid = [dict(run.parameters) for run in found.tuned if run.policy == "linucb-hybrid"]
    ridges = [each.get("ridge", 1.0) for each in hybrid]
    assert set(ridges) > {1.0, 10.0, 100.0}
    best = found.recommended["linucb-hybrid", 1.0]
    assert "ridge" not in best.at_edge or max(ridges) == 10_000 or min(ridges) == 0.01
    rows = dict(found.report().settings)
    assert rows["ridge"] == ", ".join(f"{ridge:g}" for ridge in sorted(set(ridges)))
    assert rows["values of ε"] == "0.1"  # given values are not added to
    plain = small_study(tmp_path / "other", tune_ridge=False, **given)
    assert not any("ridge" in dict(run.parameters) for run in plain.tuned)


def test_values_are_given_by_the_names_of_the_registry(tmp_path: Path) -> None:
    names = ["softmax-disjoint", "squarecb-disjoint"]
    given: dict[str, Any] = {"policies": names, "sizes": [1.0], "tune_ridge": False}
    given |= {"values": {"temperature": [0.01, 0.1], "c": [30, 300]}}
    found = small_study(tmp_path / "out", **given)
    assert found.chosen("softmax-disjoint")["temperature"] in (0.01, 0.1)
    assert found.chosen("squarecb-disjoint")["c"] in (30, 300)
    with pytest.raises(ValueError, match=r"no policy is tuned by 'beta'; there are epsilon, alpha"):
        small_study(tmp_path / "other", values={"beta": [1]})
    with pytest.raises(ValueError, match="values of alpha are given twice"):
        small_study(tmp_path / "other", values={"alpha": [1]})
    with pytest.raises(TypeError, match=r"no argument 'temperatures'; .* are epsilons, alphas:"):
        small_study(tmp_path / "other", temperatures=[1])
    assert not (tmp_path / "other").exists()


@pytest.mark.filterwarnings("ignore::topstory.studies.StudyWarning")  # one path, few events
def test_late_payoffs_have_a_figure_if_asked_for(tmp_path: Path) -> None:
    place, random, pools = world(1), np.random.default_rng(3), changing_pools(12, 5, 8, seed=2)
    tuning, evaluation = (place.log(500, pools, random) for _ in range(2))  # an event an hour
    given: dict[str, Any] = {"policies": ["ucb"], "sizes": [1.0], "alphas": [0.3], "repeats": 1}
    given |= {"epsilons": [0.1], "engine": "serial"}
    plain = ts.study(tmp_path / "plain", tuning=tuning, evaluation=evaluation, **given)
    late = ts.study(
        tmp_path / "late", tuning=tuning, evaluation=evaluation, delays=[600, 120], **given
    )
    assert plain.report().late == ()
    assert not any(figure.key == "by_delay" for figure in figures(plain.report()))
    assert len(late.evaluated) == len(plain.evaluated)
    (egreedy, ucb) = late.report().late
    assert (egreedy.policy, ucb.policy, ucb.minutes) == ("egreedy", "ucb", (0.0, 120.0, 600.0))
    for minutes, found in zip(ucb.minutes, ucb.learn, strict=True):
        by_hand = ts.replay(
            ts.policy("ucb", alpha=0.3), evaluation, delay=f"{minutes:g}min"
        ).learning
        assert found.value == by_hand.relative_ctr
    assert any(figure.key == "by_delay" for figure in figures(late.report()))
    assert "--delays 120,600" in late.report().command
    with pytest.raises(ValueError, match="a delay must be above 0 and at most 100,000 minutes"):
        ts.study(tmp_path / "bad", tuning=tuning, evaluation=evaluation, delays=[0], **given)


def test_every_row_of_the_table_of_runs_is_a_replay(study: ts.Study) -> None:
    runs = study.runs().to_pylist()
    grids = len(POLICIES) * 2 * 2 + 2 * 2 * 2  # two values and sizes, two more ridges of linucb
    judged = len(POLICIES) * 2 * 20  # two sizes, twenty seeds
    assert len(runs) == 2 * (grids + judged + 2 * 2)  # both buckets; two references, both logs
    one = next(r for r in runs if r["policy"] == "omniscient" and r["stage"] == "evaluation")
    result = ts.replay(ts.policy("omniscient"), logs()["evaluation"])
    assert (one["ctr"], one["trials"]) == (result.deployment.ctr, result.deployment.trials)
    assert (one["low"], one["high"]) == result.deployment.interval


def test_the_report_says_how_to_repeat_it(study: ts.Study) -> None:
    wanted = "topstory study OUT --tuning TUNING --evaluation EVALUATION --exploration EXPLORATION "
    wanted += "--policy egreedy,ucb,egreedy-warm,linucb-disjoint --sizes 1,0.05 "
    assert study.report().command == wanted + "--values epsilon=0.1,0.3 --values alpha=0.1,1"


def test_references_have_no_parameter(study: ts.Study) -> None:
    assert study.reference("random", "tuning").run.parameters == ()
    assert study.report().table.omniscient.value is not None


@pytest.mark.parametrize("engine", ["local", "serial"])
def test_the_engine_changes_no_bit(study: ts.Study, engine: str, tmp_path: Path) -> None:
    assert numbers(small_study(tmp_path / "out", engine=engine)) == numbers(study)


def test_a_finished_study_repeats_nothing(
    study: ts.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_study(tmp_path / "out")

    def never(*_: object) -> Outcome:
        raise AssertionError("a recorded run was made again")

    monkeypatch.setattr(run, "replay_unwarned", never)
    assert numbers(small_study(tmp_path / "out")) == numbers(study)


def test_a_study_that_is_extended_makes_only_the_new_runs(
    study: ts.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_study(tmp_path / "out", sizes=(1.0,))
    made: list[float] = []
    play = replay_unwarned

    def counted(policy: Any, log: Any, size: float, seed: int, **given: Any) -> Any:
        made.append(size)
        return play(policy, log, size, seed, **given)

    monkeypatch.setattr(run, "replay_unwarned", counted)
    assert numbers(small_study(tmp_path / "out", sizes=SIZES)) == numbers(study)
    # The curves of the new size may change what is recommended at the old one.
    assert 0.05 in made
    assert len(made) < len(study.tuned) + len(study.evaluated)


def test_a_killed_study_continues(study: ts.Study, tmp_path: Path) -> None:
    """Kill -9 at several moments, the last line torn as well: every recorded run is kept."""
    out = tmp_path / "out"
    script = textwrap.dedent(
        f"""
        from pathlib import Path
        from tests.studies.small import small_study
        small_study(Path({str(out)!r}))
        """
    )
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    for lines in (6, 20):
        process = subprocess.Popen(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path}
        )
        try:
            deadline = time.monotonic() + 120
            while _lines(out) < lines and process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.002)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    recorded = _lines(out)
    with (out / RunLog.NAME).open("ab") as file:
        file.write(b'{"type":"run","stage":"tuning","outcome":{"run":{"pol')
    assert numbers(small_study(out)) == numbers(study)
    assert recorded >= 20
    kept = (out / RunLog.NAME).read_bytes().splitlines()
    assert len(kept) == len(set(kept))  # nothing was made twice


def _lines(out: Path) -> int:
    run_log = out / RunLog.NAME
    return run_log.read_bytes().count(b"\n") if run_log.exists() else 0


def test_runs_of_two_logs_are_never_mixed(tmp_path: Path) -> None:
    small_study(tmp_path / "out", policies=["ucb"], sizes=[1.0])
    other = {**logs(), "evaluation": logs()["evaluation"][1:]}
    with pytest.raises(ValueError, match="contains a study with another evaluation log"):
        small_study(tmp_path / "out", policies=["ucb"], sizes=[1.0], **other)


def test_one_study_writes_in_a_folder_at_a_time(tmp_path: Path) -> None:
    with (
        RunLog(tmp_path / "out", {}, "topstory"),
        pytest.raises(ValueError, match="another study is running here"),
    ):
        RunLog(tmp_path / "out", {}, "topstory")


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match=r"contains 'thesis\.tex', which is not part of a study"):
        RunLog(tmp_path, {}, "topstory")


def test_a_damaged_line_is_an_error(tmp_path: Path) -> None:
    small_study(tmp_path / "out", policies=["ucb"], sizes=[1.0])
    run_log = tmp_path / "out" / RunLog.NAME
    lines = run_log.read_bytes().splitlines(keepends=True)
    run_log.write_bytes(b"".join([*lines[:3], b"{}\n", *lines[3:]]))
    with pytest.raises(ValueError, match=r"journal\.jsonl: line 4 is damaged"):
        small_study(tmp_path / "out", policies=["ucb"], sizes=[1.0])


def test_another_version_does_not_continue_it(tmp_path: Path) -> None:
    RunLog(tmp_path / "out", {}, "topstory 0.0.9").__exit__(None, None, None)
    with pytest.raises(ValueError, match=r"started by topstory 0\.0\.9"):
        RunLog(tmp_path / "out", {}, "topstory 0.1.0")


def test_the_ridge_is_searched_unless_the_papers_is_wanted(study: ts.Study, tmp_path: Path) -> None:
    paper = small_study(tmp_path / "out", tune_ridge=False)
    for found, ridges in ((study, {1.0, 10.0, 100.0}), (paper, {1.0})):
        points = found.tunings["linucb-disjoint"].points
        assert {point.parameters.get("ridge", 1.0) for point in points} == ridges
        assert all("ridge" not in point.parameters for point in found.tunings["ucb"].points)
    assert paper.report().command.endswith(" --paper-ridge")


def test_every_lift_says_whether_it_is_sure(study: ts.Study) -> None:
    for row in study.report().table.rows:
        for cell in row.cells:
            assert isinstance(cell.deploy_lift.sure, bool)
            assert isinstance(cell.learn_lift.sure, bool)
            assert cell.deploy.sure is None


def test_twenty_paths_are_judged_on_short_logs(study: ts.Study) -> None:
    assert len(study.outcomes("ucb")) == 20
    assert len({outcome.run.seed for outcome in study.outcomes("ucb")}) == 20


def test_what_is_given_twice_is_studied_once(tmp_path: Path) -> None:
    twice = {"sizes": [1, 1.0], "epsilons": [0.1, 0.1], "alphas": [0.3, 0.3]}
    found = small_study(tmp_path / "out", policies=["ucb"], **twice)
    assert found.settings.sizes == found.report().table.sizes == (1.0,)
    assert [len(row.cells) for row in found.report().table.rows] == [1, 1]
    assert [len(curve.points) for curve in found.report().curves] == [1, 1]


def test_without_exploration_the_tuning_logs_first_tenth_serves(tmp_path: Path) -> None:
    given = {**logs(), "exploration": None}
    found = small_study(tmp_path / "out", sizes=[1.0], **given)
    tuning = given["tuning"]
    assert tuning is not None
    assert found.logs["tuning"].inspection.events == len(tuning) - len(tuning) // 10
    assert found.logs["exploration"].inspection.events == len(tuning) // 10


def test_progress_covers_the_whole_study_and_only_grows(tmp_path: Path) -> None:
    seen: list[float] = []
    small_study(tmp_path / "out", progress=lambda what, done, total: seen.append(done / total))
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)


def test_the_report_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = small_study(tmp_path / "out", policies=["ucb"], sizes=[1.0])
    built: list[ts.Study] = []

    def counted(study: ts.Study) -> Report:
        built.append(study)
        return build_report(study)

    monkeypatch.setattr(build, "build_report", counted)
    found.write()
    assert found.report() is found.report()
    assert found.table1().num_rows == 2
    assert len(built) == 1


def test_the_runs_are_written_as_parquet(study: ts.Study) -> None:
    study.write()
    assert pq.read_table(study.folder / "runs.parquet").equals(study.runs())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tune_on": "both"}, "tune_on must be 'total', 'deployment' or 'learning', got 'both'"),
        ({"learning_share": 1.5}, "learning_share must be between 0 and 1: .* got 1.5"),
        ({"policies": ["greedy"]}, "no policy to tune is called 'greedy'"),
        ({"evaluation": None}, "needs both a tuning and an evaluation log"),
        ({"scale": "paper"}, "scale 'paper' applies only to simulated logs"),
        ({"engine": "spark"}, "engine must be one of serial, local, ray"),
        ({"sizes": [2.0]}, "a size is above 0 and at most 1"),
        ({"tuning": logs()["tuning"][:0]}, "the tuning log has no events"),
        (
            {"tuning": logs()["evaluation"]},
            "the tuning log and the evaluation log are the same; .* that no choice has seen",
        ),
        (
            {"exploration": logs()["evaluation"]},
            "the exploration log and the evaluation log are the same",
        ),
        (
            {"evaluation": without_features(logs()["evaluation"])},
            "the evaluation log's articles have no features, and the tuning log's [0-9]",
        ),
        (
            {"evaluation": replace(logs()["evaluation"], users=np.ones((8_000, 2), np.float32))},
            "the evaluation log's contexts have 2 features, and the tuning log's [0-9]",
        ),
    ],
)
def test_settings_that_are_not_valid_are_an_error(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        small_study(tmp_path / "out", **settings)


def test_an_unknown_scale_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="scale must be one of demo, paper, got 'web'"):
        ts.study(tmp_path / "out", scale="web")


def test_worlds_agree_that_exploration_teaches_where_to_start(tmp_path: Path) -> None:
    """The demo in small, in two worlds: with little for each article a prior is worth most."""
    for seed in range(2):
        world = ts.TodayModule(seed, users=10_000)
        found = ts.study(
            tmp_path / f"{seed}",
            exploration=world.random_log(60_000, "2008-09-01", 7, seed=1),
            tuning=world.random_log(20_000, "2009-05-01", 1, seed=2),
            evaluation=world.random_log(60_000, "2009-05-03", 1, seed=3),
            policies=["egreedy", "linucb-hybrid", "linucb-hybrid-prior"],
            sizes=[1.0],
            values={"epsilon": [0.2], "alpha": [0.2, 0.4]},
        )
        assert found.advised()[0] == "linucb-hybrid-prior"
        assert found.report().summary[0].startswith("Deploy linucb (hybrid, prior) with α = ")
        ridges = {
            dict(run.parameters).get("ridge")
            for run in found.tuned
            if run.policy == "linucb-hybrid-prior"
        }
        assert ridges == {None, 100.0}


def test_priors_are_studied_where_they_can_be_learned(tmp_path: Path) -> None:
    given = logs()
    log, explored = given["tuning"], given["exploration"]
    assert default_policies(log, explored) == default_policies(log, None) == STUDIED
    assert STUDIED[: len(LEARNERS)] == LEARNERS  # the paper's first
    one = explored[explored.shown_index == explored.shown_index[0]]
    assert default_policies(log, one) == LEARNERS
    assert SCALES["paper"].policies == LEARNERS
    assert SCALES["demo"].policies == (*LEARNERS, "linucb-hybrid-prior")


def test_too_few_paths_on_articles_that_stay_are_warned_of(tmp_path: Path) -> None:
    with pytest.warns(ts.StudyWarning, match="3 paths cannot show how often"):
        found = small_study(tmp_path / "out", policies=["ucb"], sizes=(1.0,), repeats=3)
    assert "hardly change" in found.report().warnings[0]


@pytest.mark.parametrize("name", SCALES)
def test_parameters_are_tuned_on_traffic_as_dense_as_that_they_are_judged_on(name: str) -> None:
    """How much exploring pays depends on the visits an article gets in its time."""
    scale = SCALES[name]
    tuning, evaluation = (
        scale.tuning / scale.tuning_days,
        scale.evaluation / scale.evaluation_days,
    )
    assert tuning == pytest.approx(evaluation, rel=0.1)
