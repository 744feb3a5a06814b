"""*What if* in the studio: it ends with a chart, promote changes the policy, revert undoes it."""

from __future__ import annotations

import time
from typing import Any

import httpx
import numpy as np
from playwright.sync_api import Browser
from tests.serving.pages.browsing import visiting
from tests.serving.processes import Served

import topstory as ts

MARK = {"X-Topstory-Studio": "1"}


def visits(service: Served, count: int) -> None:
    """Visitors who click on what they like."""
    random = np.random.default_rng(0)
    auth = {"Authorization": f"Bearer {service.key}"}
    with httpx.Client(base_url=service.url, timeout=60, headers=auth) as http:
        groups = random.integers(5, size=count)
        users = [[*(0.84 if g == each else 0.04 for g in range(5)), 1.0] for each in groups]
        made = http.post("/v1/decide", json=[{"user": user} for user in users]).json()
        topics = ("politics", "sports", "business", "science", "arts")
        liked = [
            each["article"].startswith(topics[g]) for each, g in zip(made, groups, strict=True)
        ]
        paid = [
            {"decision": each["decision"], "payoff": 1.0}
            for each, likes in zip(made, liked, strict=True)
            if random.random() < (0.6 if likes else 0.1)
        ]
        assert http.post("/v1/feedback", json=paid).status_code == 200


def test_what_if_ends_with_a_chart_and_promote_and_revert_change_the_policy(
    browser: Browser, paged: Served
) -> None:
    for _ in range(3):
        visits(paged, 1000)
    with (
        visiting(browser, paged) as visit,
        ts.Client(paged.url, paged.key, timeout=60) as client,
    ):
        before = client.call("policy", pool="front")
        page = visit.sign_in(paged.key, "/studio/policy")
        page.set_default_timeout(120_000)  # a process of its own, at the lowest priority
        rows = page.locator("#choices li")
        rows.first.wait_for()
        assert "decides now" in rows.first.inner_text()
        now = [before.policy.parameters[name] for name in ("alpha", "ridge", "shared_ridge")]
        fields = rows.first.locator("input")
        assert [float(fields.nth(place).input_value()) for place in range(3)] == now
        for _ in range(rows.count() - 1):
            rows.last.locator(".close").click()
        rows.first.locator("select").select_option("ucb")
        rows.first.locator("input").fill("-1")
        page.evaluate("document.querySelector('#try').noValidate = true")
        page.click("#start")
        page.wait_for_selector("#doing .problem:has-text('alpha must be >= 0')")
        rows.first.locator("input").fill("0.7")
        page.click("#more")
        rows.last.locator("select").select_option("random")
        for method in ("replay", "evaluate"):
            page.check(f"#try input[value={method}]")
            page.click("#start")
            page.wait_for_selector("#doing progress")
            page.wait_for_selector("#result svg circle.mean")
            assert page.locator("#result svg circle.mean").count() == 2
            assert page.locator("#result svg line.range").count() == 2
            assert ("Replay:" in page.inner_text("#result")) == (method == "replay")
        page.click("#result button:has-text('Promote ucb, α 0.7')")
        page.wait_for_selector("#history td:has-text('promoted')")
        promoted = client.call("policy", pool="front")
        assert (promoted.policy.model, before.policy.model) == ("context-free", "hybrid")
        assert promoted.policy.parameters["alpha"] == 0.7
        page.click("#revert")
        page.wait_for_selector("#history td:has-text('reverted')")
        assert client.call("policy", pool="front").policy == before.policy


def test_a_trial_can_be_cancelled_and_needs_the_role(paged: Served) -> None:
    asked = {"candidates": [{"name": "linucb-disjoint", "parameters": {"alpha": 0.4}}]}
    with httpx.Client(base_url=paged.url, timeout=60) as http:
        http.post("/studio/session", headers={"Authorization": f"Bearer {paged.reader}"})
        path = "/studio/data/what-if"
        assert http.get(path).status_code == 200
        assert http.post(path, json=asked, headers=MARK).status_code == 403
        assert http.post(f"{path}/cancel", headers=MARK).status_code == 403
        assert http.get(f"{path}/policy?place=0").status_code == 403
        http.post("/studio/session", headers={"Authorization": f"Bearer {paged.key}"})
        wrong: list[dict[str, Any]] = [
            {"name": "omniscient"},
            {"name": "ucb", "parameters": {"alpha": -1}},
            {"name": "ucb", "parameters": {"seed": 1}},
        ]
        for each in wrong:
            refused = http.post(path, json={"candidates": [each]}, headers=MARK)
            assert refused.status_code == 422, each
        assert http.post(path, json=asked, headers=MARK).json()["state"] == "running"
        assert http.post(path, json=asked, headers=MARK).status_code == 409
        began = time.monotonic()
        assert http.post(f"{path}/cancel", headers=MARK).json() == {"state": "cancelled"}
        assert time.monotonic() - began < 5
        assert http.get(f"{path}/policy?place=0").status_code == 409
