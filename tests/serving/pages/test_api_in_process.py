"""The routes of the API beside deciding: roles, words for what is wrong, and the pages' alarms."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serving.pages.in_process import Site, site

from topstory.serving.api.endpoints import ENDPOINTS, ROLES
from topstory.serving.journal.clock import SECOND, Clock
from topstory.serving.pages.routes import HISTORY_FILE

ARTICLES = "/v1/pools/front/articles"
FACTS: dict[str, Any] = {"features": [0.5, 1.0], "title": "Rain"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("in-process") / "data") as found:
        for number in range(3):
            path = f"{ARTICLES}/story-{number}"
            assert found.ask("PUT", path, "edit", json=FACTS).status_code == 200
        found.visit(60, 20)
        yield found


def reason(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["reason"]


def test_every_endpoint_takes_its_own_role_and_no_other(served: Site) -> None:
    for endpoint in ENDPOINTS:
        path = endpoint.path.replace("{pool}", "nowhere").replace("{article}", "none")
        asked = served.ask(endpoint.method, path)
        if endpoint.role is None:
            assert asked.status_code == 200, endpoint.name
            continue
        assert asked.status_code == 401, endpoint.name
        for role in ROLES:
            answer = served.ask(endpoint.method, path, role)
            assert (answer.status_code == 403) == (role != endpoint.role), (endpoint.name, role)


def test_an_article_is_what_was_put_until_it_is_removed(served: Site) -> None:
    path = f"{ARTICLES}/rain/or/shine"
    once = {"Idempotency-Key": "edit-1"}
    put = served.ask("PUT", path, "edit", json=FACTS, headers=once)
    assert put.status_code == 200
    assert served.get(path, "read").json() == put.json()
    listed = [each["id"] for each in served.get(ARTICLES, "read").json()]
    assert sorted(listed) == ["rain/or/shine", "story-0", "story-1", "story-2"]
    record = served.service.state.number
    assert served.ask("PUT", path, "edit", json=FACTS, headers=once).status_code == 200
    assert served.service.state.number == record  # the same edit, sent again
    assert served.ask("DELETE", path, "edit").json()["removed"] == "rain/or/shine"
    assert reason(served.get(path, "read")) == (404, "unknown_article")


def test_what_is_wrong_is_said_and_changes_nothing(served: Site) -> None:
    record = served.service.state.number
    path = f"{ARTICLES}/new"

    def put(at: str = path, **options: Any) -> tuple[int, str]:
        return reason(served.ask("PUT", at, "edit", **options))

    assert put(json={"features": "many"}) == (422, "bad_request")
    assert put(json=FACTS | {"colour": "red"}) == (422, "bad_request")
    assert put(content=b"{")[0] == 400
    assert put(json=FACTS, headers={"Idempotency-Key": "x" * 129}) == (422, "bad_request")
    assert put(f"{ARTICLES}/{'x' * 500}", json=FACTS) == (422, "bad_request")
    assert put(json=FACTS, at="/v1/pools/nowhere/articles/new")[0] == 404
    too_long = b'"' + b"x" * served.service.config.limits.body_bytes + b'"'
    assert put(content=too_long) == (413, "body_too_long")
    wrong = served.ask("PATCH", path, "edit")
    assert reason(wrong) == (405, "wrong_method")
    assert wrong.headers["allow"] == "GET, HEAD, PUT, DELETE"
    assert reason(served.get("/v1/decide", "decide")) == (405, "wrong_method")
    assert reason(served.get("/v2/decide", "decide")) == (404, "unknown_path")
    assert served.service.state.number == record


def test_stats_metrics_and_the_api_document_agree_on_what_there_is(served: Site) -> None:
    pool = served.get("/v1/stats", "read").json()["pools"]["front"]
    assert (pool["shows"], pool["payoff"], pool["articles"]) == (60, 20.0, 3)
    metrics = served.get("/metrics", "read")
    assert metrics.headers["content-type"].startswith("text/plain")
    lines = metrics.text.splitlines()
    record = next(line for line in lines if "model_record " in line and line[0] != "#")
    assert float(record.split()[-1]) == served.service.state.number
    assert [line for line in lines if 'path="/v1/decide"' in line or 'route="/v1/decide"' in line]
    document = served.get("/openapi.json").json()
    described = {(each.path, each.method.lower()) for each in ENDPOINTS if each.described}
    found = {
        (path, method)
        for path, methods in document["paths"].items()
        for method in methods
        if method != "parameters"
    }
    assert found == described


def test_ready_says_whether_the_journal_can_be_written(
    served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert served.get("/health/live").json()["status"] == "live"
    assert served.get("/health/ready").status_code == 200
    monkeypatch.setattr(served.service.commits, "_failure", "secret path: disk full")
    ready = served.get("/health/ready")
    assert ready.status_code == 503
    assert "secret" not in ready.text  # strangers may read this
    served.pages._snapshots._kept.clear()
    alarms = served.get("/studio/data/now", "read").json()["alarms"]
    assert [each["kind"] for each in alarms] == ["bad"]
    assert "disk full" in alarms[0]["words"]


def test_alarms_say_what_is_late(served: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = served.pages._snapshots

    def words() -> str:
        snapshots._kept.clear()
        alarms = served.get("/studio/data/now", "read").json()["alarms"]
        assert all(each["kind"] == "warn" for each in alarms)
        return " ".join(each["words"] for each in alarms)

    assert words() == ""
    monkeypatch.setattr(served.keeper, "at", served.service.clock.now() - 7200 * SECOND)
    assert "120 minutes old" in words()
    monkeypatch.setattr(snapshots, "_started", snapshots._started - 1000)
    snapshots.sample()
    monkeypatch.setattr("topstory.serving.pages.studio.snapshot.QUIET_SECONDS", 0)
    assert "does your site still ask?" in words()
    clock = served.service.clock
    monkeypatch.setattr(served.service.ledger, "clock", Clock(clock.now() + 60 * SECOND))
    assert "seconds ahead" in words()


def test_the_charts_and_the_state_are_kept_when_the_service_ends(tmp_path: Path) -> None:
    with site(tmp_path / "data") as found:
        found.ask("PUT", f"{ARTICLES}/only", "edit", json=FACTS)
        found.visit(10, 5)

        async def life() -> None:
            async with found.lifespan():
                for _ in range(3):
                    await asyncio.sleep(0)

        found.runner.run(life())
        assert found.keeper.number == found.service.state.number
    assert (tmp_path / "data" / HISTORY_FILE).is_file()
    with site(tmp_path / "data") as again:
        series = again.get("/studio/data/now", "read").json()["series"]["live"]
        assert series, "the samples of the first run"
        assert again.get("/v1/stats", "read").json()["pools"]["front"]["payoff"] == 5.0


def test_levers_are_set_priced_listed_and_undone(served: Site) -> None:
    path, once = "/v1/pools/front/levers/story-1", {"Idempotency-Key": "levers-1"}
    said = {"pin": {"slot": 1}, "boost": 2.0, "max_shows": 10**6, "max_share": 0.5}
    priced = served.ask("POST", path, "read", json=said).json()
    assert priced["cost"] >= 0
    assert served.get("/v1/pools/front/levers", "read").json() == []
    put = served.ask("PUT", path, "edit", json=said, headers=once)
    assert put.status_code == 200
    assert put.json()["pinned"]
    (listed,) = served.get("/v1/pools/front/levers", "read").json()
    assert (listed["article"], listed["boost"], listed["max_share"]) == ("story-1", 2.0, 0.5)
    assert served.get(f"{ARTICLES}/story-1", "read").json()["levers"]["max_shows"] == 10**6
    for wrong in ({"boost": 99}, {"max_share": 0}, {"pin": {"slot": 0}}, {"pins": 1}):
        assert served.ask("PUT", path, "edit", json=wrong).status_code == 422
    taken = served.ask("PUT", "/v1/pools/front/levers/story-2", "edit", json={"pin": {}})
    assert reason(taken) == (409, "slot_taken")
    assert reason(served.ask("PUT", f"{path}0", "edit", json={})) == (404, "unknown_article")
    assert served.ask("PUT", path, "edit", json={}).json()["pin"] is None
    assert served.get("/v1/pools/front/levers", "read").json() == []
