"""Limits that only a small service reaches, over HTTP, for one process and for workers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from tests.serving.http.test_http import ask, reason
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.messages import ArticleRequest
from topstory.serving.service.sequencer.recent_decisions import TRIM_INTERVAL

USER = [0.2, 0.3, 0.5, 1.0]
LIMITS: dict[str, Any] = {
    "batch": 60,
    "waiting": 20,
    "remembered": 10,
    "magnitude": 5.0,
    "context_norm": 8,
    "payoffs": [-5, 5],
}
SITE = "https://news.example"


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two workers"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    settings: dict[str, Any] = {
        "limits": LIMITS,
        "journal": {"lock_seconds": 0.05},
        "cors_origins": [SITE],
        "workers": request.param,
    }
    with Served(tmp_path_factory.mktemp("limited"), **settings) as service:
        with ts.Client(service.url, service.key, timeout=60) as client:
            client.put_article("front", "only", ArticleRequest(features=(0.5, 1.0)))
        yield service
    assert "Traceback" not in service.errors()


def test_records_above_the_limit_of_waiting_ones_are_rejected(served: Served) -> None:
    status, answers, _ = ask(served, "POST", "/v1/decide", [{"user": USER}] * 50)
    assert status == 200
    refused = [each["error"]["reason"] for each in answers if "error" in each]
    assert refused == ["overloaded"] * 30
    assert ask(served, "POST", "/v1/decide", {"user": USER})[0] == 200


def test_the_limit_of_arrays_is_the_one_in_the_openapi_document(served: Served) -> None:
    _, response, _ = ask(served, "GET", "/openapi.json")
    body = response["paths"]["/v1/feedback"]["post"]["requestBody"]["content"]["application/json"]
    (most,) = (kind["maxItems"] for kind in body["schema"]["anyOf"] if "maxItems" in kind)
    assert most == LIMITS["batch"]
    forged = {"decision": "forged", "payoff": 1}
    assert ask(served, "POST", "/v1/feedback", [forged] * most)[0] == 200
    refused = ask(served, "POST", "/v1/feedback", [forged] * (most + 1))
    assert reason(refused) == (413, "batch_too_long")


def test_older_decisions_are_found_in_the_journal(served: Served) -> None:
    asked = {"user": USER, "request": "an old one"}
    _, made, _ = ask(served, "POST", "/v1/decide", asked)
    for _ in range(5):
        ask(served, "POST", "/v1/decide", [{"user": USER}] * 20)
    page = ask(served, "GET", "/metrics")[1].decode()
    (held,) = (line for line in page.splitlines() if line.startswith("topstory_remembered"))
    assert float(held.split()[-1]) <= LIMITS["remembered"] + 2 * TRIM_INTERVAL
    assert ask(served, "POST", "/v1/decide", asked)[1] == made
    given = {"decision": made["decision"], "payoff": 1}
    answers = [ask(served, "POST", "/v1/feedback", given)[1] for _ in range(2)]
    assert [each["repeated"] for each in answers] == [False, True]


def test_numbers_above_the_magnitude_are_rejected(served: Served) -> None:
    made = ask(served, "POST", "/v1/decide", {"user": [5, -5, 0, 1]})[1]
    article = "/v1/pools/front/articles/large"
    for method, path, body, expected in (
        ("POST", "/v1/decide", {"user": [5.1, 0, 0, 1]}, "bad_context"),
        ("POST", "/v1/feedback", {"decision": made["decision"], "payoff": -5.1}, "bad_payoff"),
        ("PUT", article, {"features": [5.1, 1]}, "bad_article"),
    ):
        assert reason(ask(served, method, path, body)) == (422, expected)
    given = {"decision": made["decision"], "payoff": -5}
    assert ask(served, "POST", "/v1/feedback", given)[0] == 200


def test_requests_get_503_while_the_journal_cannot_be_written(served: Served) -> None:
    def ready() -> tuple[int, str]:
        status, answer, _ = ask(served, "GET", "/health/ready")
        return status, answer["status"]

    made = ask(served, "POST", "/v1/decide", {"user": USER})[1]
    given = {"decision": made["decision"], "payoff": 1}
    edit = ("PUT", "/v1/pools/front/articles/only", {"features": [0.5, 1], "title": "New"})
    before = ask(served, "GET", "/v1/stats")[1]["fingerprint"]
    other = sqlite3.connect(served.data / "journal.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for asked in (
        ("POST", "/v1/decide", {"user": USER}),
        ("POST", "/v1/feedback", given),
        edit,
    ):
        response = ask(served, *asked)
        assert reason(response) == (503, "journal_unavailable")
        assert response[2]["retry-after"] == "1"
    assert ready() == (503, "not ready")
    assert ask(served, "GET", "/v1/stats")[1]["fingerprint"] == before
    other.execute("ROLLBACK")
    other.close()
    eventually(lambda: ready() == (200, "ready"))
    assert ask(served, "POST", "/v1/feedback", given)[1]["repeated"] is False
    assert ask(served, *edit)[1]["title"] == "New"


def test_only_pages_of_listed_sites_may_call(served: Served) -> None:
    for origin, expected in ((SITE, SITE), ("https://evil.example", None)):
        for method, path, body in (
            ("POST", "/v1/decide", {"user": USER}),
            ("GET", "/v1/stats", None),
        ):
            response = ask(served, method, path, body, headers={"Origin": origin})
            assert response[0] == 200
            assert response[2].get("access-control-allow-origin") == expected
