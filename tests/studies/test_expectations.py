"""What the paper found, found again in simulated worlds, at the demo's scale: `make study`.

Contexts are the users' true groups, so that what is tested are the policies and the study, not how
much a feature model could learn. A day of one world is luck to a hundredth or two: numbers are
means over several worlds. Fixed seeds: every number below is the same each time.
"""

from __future__ import annotations

from statistics import mean

import pytest

import topstory as ts
from topstory.report import Report

pytestmark = pytest.mark.long

MODELS = {"": "ucb", "-warm": "ucb-warm", "-seg": "ucb-seg"}
MODELS |= {"-disjoint": "linucb-disjoint", "-hybrid": "linucb-hybrid"}


Reports = list[Report]  # of one study in each world


def logs(seed: int) -> dict[str, ts.EventLog]:
    world = ts.TodayModule(seed)
    return {
        "exploration": world.random_log(500_000, "2008-09-01", 7, seed=1),
        "tuning": world.random_log(1_000_000, "2009-05-01", 0.25, seed=2),
        "evaluation": world.random_log(3_000_000, "2009-05-03", 1, seed=3),
    }


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """All data, in three worlds."""
    return [
        ts.study(
            tmp_path_factory.mktemp("study") / "out",
            **logs(seed),  # type: ignore[arg-type]  # each log by its name
            sizes=[1.0],
            repeats=3,
        ).report()
        for seed in range(3)
    ]


def ctr(reports: Reports, policy: str, size: float = 1.0, bucket: str = "deploy") -> float:
    """The mean over the worlds."""
    cells = [
        cell
        for report in reports
        for row in report.table.rows
        for cell in row.cells
        if (row.policy, cell.size) == (policy, size)
    ]
    assert len(cells) == len(reports)
    return mean(float(getattr(cell, bucket).value) for cell in cells)


def learning_curve(reports: Reports, policy: str) -> list[float]:
    """The learning bucket by ε or α, on the tuning logs: means over the worlds."""
    curves = [curve for report in reports for curve in report.curves if curve.policy == policy]
    assert len(curves) == len(reports)
    return [
        mean(point.learn.value or 0.0 for point in points)
        for points in zip(*(curve.points for curve in curves), strict=True)
    ]


@pytest.mark.parametrize("model", MODELS)
def test_an_upper_confidence_bound_earns_more_while_it_learns(reports: Reports, model: str) -> None:
    """Each with the parameter that earns most while it learns, of as many."""
    bounded, greedy = (
        max(learning_curve(reports, name)) for name in (MODELS[model], f"egreedy{model}")
    )
    assert bounded >= greedy


@pytest.mark.parametrize("model", ["-warm", "-seg", "-disjoint", "-hybrid"])
def test_features_help(reports: Reports, model: str) -> None:
    assert ctr(reports, f"egreedy{model}") > ctr(reports, "egreedy")
    assert ctr(reports, MODELS[model]) > ctr(reports, "ucb")


@pytest.mark.parametrize("model", ["-warm", "-seg", "-disjoint", "-hybrid"])
def test_who_knows_the_user_beats_hindsight(reports: Reports, model: str) -> None:
    omniscient = mean(report.table.omniscient.value or 0.0 for report in reports)
    assert ctr(reports, f"egreedy{model}") > omniscient
    assert ctr(reports, MODELS[model]) > omniscient


@pytest.mark.parametrize("policy", ["egreedy", "egreedy-seg", "ucb-seg", "ucb", "linucb-disjoint"])
def test_tuning_curves_of_the_learning_bucket_are_inverted_us(
    reports: Reports, policy: str
) -> None:
    values = learning_curve(reports, policy)
    assert 0 < values.index(max(values)) < len(values) - 1


def test_only_who_knows_the_user_lifts_an_articles_ctr(reports: Reports) -> None:
    lifts = {
        policy: mean(
            cloud.mean_lift or 0.0
            for report in reports
            for cloud in report.scatters
            if cloud.policy == policy
        )
        for policy in {cloud.policy for cloud in reports[0].scatters}
    }
    assert abs(lifts.pop("egreedy")) < 0.02
    assert abs(lifts.pop("ucb")) < 0.02
    assert min(lifts.values()) > 0.05


SPARSE = (0.05, 0.01)
RIVALS = ("linucb-disjoint", "ucb-seg")


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """Little data in four worlds."""
    return [
        ts.study(
            tmp_path_factory.mktemp("sparse") / "out",
            **logs(seed),  # type: ignore[arg-type]  # each log by its name
            policies=["linucb-hybrid", *RIVALS],
            sizes=SPARSE,
            alphas=[0.1, 0.2, 0.4, 1.0],
            repeats=6,
        ).report()
        for seed in range(4)
    ]


@pytest.mark.parametrize("size", SPARSE)
def test_with_little_data_sharing_pays(sparse: Reports, size: float) -> None:
    """Hybrid models are ahead of the others, each with its ridge."""
    for rival in RIVALS:
        assert ctr(sparse, "linucb-hybrid", size) > ctr(sparse, rival, size)
