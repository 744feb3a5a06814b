"""What the paper found, found again in a simulated world, at the demo's scale: `make study`.

Contexts are the users' true groups, so that what is tested are the policies and the study, not how
much a feature model could learn. One world, fixed seeds: every number below is the same each time.

What hybrid models earn with little data takes more than a day of one world to tell from luck: its
test averages over four worlds, and over six seeds in each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import topstory as ts
from topstory.report import Report

pytestmark = pytest.mark.long

MODELS = {"": "ucb", "-warm": "ucb-warm", "-seg": "ucb-seg"}
MODELS |= {"-disjoint": "linucb-disjoint", "-hybrid": "linucb-hybrid"}


Studying = Callable[..., Report]


def logs(seed: int) -> dict[str, ts.EventLog]:
    world = ts.TodayModule(seed)
    return {
        "exploration": world.random_log(500_000, "2008-09-01", 7, seed=1),
        "tuning": world.random_log(1_000_000, "2009-05-01", 0.25, seed=2),
        "evaluation": world.random_log(3_000_000, "2009-05-03", 1, seed=3),
    }


@pytest.fixture(scope="module")
def studying(tmp_path_factory: pytest.TempPathFactory) -> Studying:
    """Studies of the same logs, in one folder: what one has run, the next need not."""
    out, given = tmp_path_factory.mktemp("study") / "out", logs(seed=0)

    def study(**told: Any) -> Report:
        # So few hours leave a single tuning run too much luck.
        return ts.study(out, **given, repeats=3, **told).report()

    return study


@pytest.fixture(scope="module")
def report(studying: Studying) -> Report:
    return studying(sizes=[1.0])


@pytest.fixture(scope="module")
def learning(studying: Studying) -> Report:
    """With the parameters that earn most while they learn."""
    return studying(sizes=[1.0], tune_on="learning")


def ctr(report: Report, policy: str, size: float = 1.0, bucket: str = "deploy") -> float:
    row = next(row for row in report.table.rows if row.policy == policy)
    value = getattr(next(cell for cell in row.cells if cell.size == size), bucket).value
    assert isinstance(value, float)
    return value


@pytest.mark.parametrize("model", MODELS)
def test_an_upper_confidence_bound_earns_more_while_it_learns(learning: Report, model: str) -> None:
    assert ctr(learning, MODELS[model], bucket="learn") >= ctr(
        learning, f"egreedy{model}", bucket="learn"
    )


@pytest.mark.parametrize("model", ["-warm", "-seg", "-disjoint", "-hybrid"])
def test_features_help(report: Report, model: str) -> None:
    assert ctr(report, f"egreedy{model}") > ctr(report, "egreedy")
    assert ctr(report, MODELS[model]) > ctr(report, "ucb")


@pytest.mark.parametrize("model", ["-warm", "-seg", "-disjoint", "-hybrid"])
def test_who_knows_the_user_beats_hindsight(report: Report, model: str) -> None:
    omniscient = report.table.omniscient.value
    assert omniscient is not None
    assert ctr(report, f"egreedy{model}") > omniscient
    assert ctr(report, MODELS[model]) > omniscient


@pytest.mark.parametrize("policy", ["egreedy", "egreedy-seg", "ucb-seg", "ucb", "linucb-disjoint"])
def test_tuning_curves_of_the_learning_bucket_are_inverted_us(report: Report, policy: str) -> None:
    curve = next(c for c in report.curves if c.policy == policy and c.size == 1.0)
    values = [point.learn.value or 0.0 for point in curve.points]
    assert 0 < values.index(max(values)) < len(values) - 1


def test_only_who_knows_the_user_lifts_an_articles_ctr(report: Report) -> None:
    lifts = {cloud.policy: cloud.mean_lift or 0.0 for cloud in report.scatters}
    assert abs(lifts.pop("egreedy")) < 0.02
    assert abs(lifts.pop("ucb")) < 0.02
    assert min(lifts.values()) > 0.05


SPARSE = (0.05, 0.01)
RIVALS = ("linucb-disjoint", "ucb-seg")


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> list[Report]:
    """Little data in four worlds, the ridge searched as well as α."""
    return [
        ts.study(
            tmp_path_factory.mktemp("sparse") / "out",
            **logs(seed),  # type: ignore[arg-type]  # each log by its name
            policies=["linucb-hybrid", *RIVALS],
            sizes=SPARSE,
            alphas=[0.1, 0.2, 0.4, 1.0],
            tune_ridge=True,
            repeats=6,
        ).report()
        for seed in range(4)
    ]


@pytest.mark.parametrize("size", SPARSE)
def test_with_little_data_sharing_pays(sparse: list[Report], size: float) -> None:
    """Hybrid models with their ridge are ahead of the others, with theirs and with the paper's."""

    def searched(policy: str) -> float:
        found = [r for one in sparse for r in one.ridges if (r.policy, r.size) == (policy, size)]
        assert len(found) == len(sparse)
        return sum(ridge.tuned.value or 0.0 for ridge in found) / len(found)

    def fixed(policy: str) -> float:
        return sum(ctr(one, policy, size) for one in sparse) / len(sparse)

    hybrid = searched("linucb-hybrid")
    assert hybrid > searched("linucb-disjoint")
    for rival in RIVALS:
        assert hybrid > fixed(rival)
