"""From a shop's export, as Germans write it, to a service that learns revenue: by commands alone.

The other example is a news site (`tests/test_news_site.py`), whose payoffs are clicks.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tests.cli.running import answer, run
from tests.events.formats.mapped.test_suggestion import shop
from tests.serving.making import config
from tests.serving.making import run as served

import topstory as ts
from topstory.serving.api.messages import ArticleRequest, DecideRequest, FeedbackRequest
from topstory.serving.service.service import Service


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export read by the mapping that is suggested for it, but for the payoff."""
    folder = tmp_path_factory.mktemp("shop")
    events, articles = shop(folder, 1_200)
    suggested = run("import", "csv", events, "--suggest", "-o", f"articles={articles}").stdout
    (folder / "mapping.toml").write_text(suggested)
    revenue = ("-o", "payoff=Umsatz", "-o", "missing_payoff=0")
    report = answer(
        "import", "csv", events, folder / "log", "--map", folder / "mapping.toml", *revenue
    )
    assert (report["events"], report["skipped"]) == (1_200, {})
    return folder / "log"


def test_revenue_is_a_mean_payoff_and_its_scale_is_that_of_alpha(log: Path) -> None:
    found = answer("inspect", log)
    assert found["fit"]
    assert ts.EventLog.read(log).payoff.max() == pytest.approx(1234.5)
    told = run("choose", log, log.parent / "choice")
    assert "no policy that knows the user is compared" in told.stderr
    tuned = answer("tune", log, "--policy", "ucb", "--repeats", 1)
    assert min(point["parameters"]["alpha"] for point in tuned["curves"][0]["points"]) > 5


def test_methods_that_do_not_suit_revenue_are_named_below_those_that_do(
    log: Path, tmp_path: Path
) -> None:
    """Not beside them: their reasons are long, and left no room for the numbers."""
    shown = run("features", "fit", log, tmp_path / "model", "--method", "auto").stdout
    for method in ("direct", "pca"):
        assert re.search(rf"^{method} +linucb-\w+ +[\d.]+ +[+-]", shown, re.M), shown
    for method in ("clusters", "bilinear"):
        assert f"{method} does not suit this log: the regression needs clicks" in shown


def test_what_train_prints_is_the_configuration_of_a_service_that_takes_revenue(
    log: Path, tmp_path: Path
) -> None:
    model, policy = tmp_path / "features.safetensors", tmp_path / "policy.safetensors"
    run("features", "fit", log, model, "--method", "direct")
    printed = run(
        *("train", log, "--features", model, "--policy", "linucb-disjoint", "--alpha", 100),
        *("--ridge", 30, "--out", policy),
    ).stdout
    lines = tomllib.loads(printed.split("the configuration has:")[1])
    assert lines["features"] == str(model)
    assert lines["limits"] == {"payoffs": [0, 1234.5]}
    settings = config(
        tmp_path / "data", traffic={"learning": 1, "deployment": 0, "uniform": 0}, **lines
    )

    async def work(service: Service) -> None:
        for i in range(4):
            profile = {"Gruppe": "ab"[i % 2], "Preis": 9.5 * i, "seit": "2026-03-02T08:30:00"}
            await service.put_article("front", f"P-{i}", ArticleRequest(profile=profile))
        for i in range(6):
            user = {"D": 0.25, "E": bool(i % 2), "F": i}
            made = await service.decide(DecideRequest(user=user))
            await service.feedback(FeedbackRequest(decision=made.decision, payoff=1234.5 * (i % 2)))
        assert service.state.pools["front"].policy.trials == ts.Policy.load(policy).trials

    served(settings, work)
