"""What the studio's scripts are told: sums that agree, orders that hold, errors in words."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.serving.pages.in_process import MARK, Site, site

from topstory.kernels.buckets import DEPLOYMENT
from topstory.serving.http.views import article_view
from topstory.serving.journal.records import ArticleFacts
from topstory.serving.pages.explanation import LISTED, ExplainedDecision, explain
from topstory.serving.pages.studio import articles
from topstory.serving.pages.studio.articles import PAGE
from topstory.serving.pages.studio.gate import (
    MAX_STREAMS,
    MAX_STREAMS_OF_KEY,
    STREAM,
    session_token,
)

USER = [0.04, 0.84, 0.04, 0.04, 0.04, 1.0]
SPORTY = [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]  # as those who visit
VISITS, CLICKS = 300, 120


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The demo's articles after visits of one group."""
    folder = tmp_path_factory.mktemp("in-process") / "data"
    with site(folder, demo=True, context=6, pages={"today": True}) as found:
        found.visit(VISITS, CLICKS)
        yield found


def data(found: Site, name: str, **asked: Any) -> Any:
    answer = found.get(f"/studio/data/{name}", "read", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refusal(found: Site, name: str, **asked: Any) -> tuple[int, str]:
    answer = found.get(f"/studio/data/{name}", "read", params=asked)
    return answer.status_code, answer.json()["error"]["reason"]


def test_the_state_of_a_pool_counts_every_visit_and_click_once(
    demo: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topstory.serving.pages.studio.snapshot.FRESH_SECONDS", 60.0)
    now = data(demo, "now")
    buckets = now["buckets"].values()
    stats = demo.get("/v1/stats", "read").json()["pools"]["front"]
    assert sum(each["shows"] for each in buckets) >= VISITS
    assert sum(each["payoff"] for each in buckets) == stats["payoff"] >= CLICKS
    assert sum(now["shares"].values()) == pytest.approx(1.0)
    assert now["articles"] == now["showable"] == 20
    assert now["alarms"] == []
    assert now["simulation"] is None
    assert data(demo, "now") == now  # made once, however many look


def test_a_page_of_10_000_articles_costs_what_one_of_20_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the rows of one page are looked at closely, sent and drawn."""
    seen: list[str] = []

    def counted(service: Any, pool: str, article: str) -> Any:
        seen.append(article)
        return article_view(service, pool, article)

    monkeypatch.setattr(articles, "article_view", counted)
    with site(tmp_path / "data", policy={"name": "ucb"}) as crowded:
        pool = crowded.service.decider("front").pool
        for number in range(10_000):
            pool.place(ArticleFacts(f"story-{number:05}", title=f"Story {number}"), 1)
        first, last = (data(crowded, "articles", sort="title", page=page) for page in (1, 400))
        assert (first["all"], first["pages"], len(first["rows"])) == (10_000, 400, PAGE)
        assert len(seen) == 2 * PAGE
        assert not {row["id"] for row in first["rows"]} & {row["id"] for row in last["rows"]}
        (found,) = data(crowded, "articles", search="story 9999")["rows"]
        assert found["id"] == "story-09999"
        assert len(seen) == 2 * PAGE + 1


def test_the_table_of_articles_is_sorted_searched_and_cut_into_pages(demo: Site) -> None:
    def column(name: str, **asked: Any) -> list[Any]:
        return [row[name] for row in data(demo, "articles", **asked)["rows"]]

    titles = column("title", sort="title", order="up")
    assert titles == sorted(titles, key=str.casefold)
    assert column("title", sort="title") == titles[::-1]
    added = column("added", sort="newest")
    assert added == sorted(added, reverse=True)
    estimates = column("estimate", sort="estimate")
    assert estimates == sorted(estimates, reverse=True)
    assert len(column("id", sort="ctr")) == 20
    found = data(demo, "articles", search="SPORTS")
    assert 0 < found["total"] < found["all"] == 20
    assert all("sports" in f"{row['id']} {row['title']}".casefold() for row in found["rows"])
    assert data(demo, "articles", search="no such words")["rows"] == []
    last = data(demo, "articles", page="99")
    assert (last["page"], last["pages"]) == (1, 1)
    assert refusal(demo, "articles", sort="mood") == (422, "bad_request")
    assert refusal(demo, "articles", page="-1") == (422, "bad_request")
    assert refusal(demo, "articles", page="9" * 10) == (422, "bad_request")
    assert refusal(demo, "articles", pool="nowhere")[0] == 404


def test_segments_share_the_visits_among_them(demo: Site) -> None:
    found = data(demo, "visitors")
    assert sum(each["share"] for each in found) == pytest.approx(1.0)
    busiest = max(found, key=lambda each: float(each["share"]))
    assert (busiest["segment"], busiest["name"]) == (1, "follows sports")
    for each in found:
        estimates = [liked["estimate"] for liked in each["likes"]]
        assert len(estimates) == 3
        assert estimates == sorted(estimates, reverse=True)


def test_an_explanation_adds_up_to_the_lead(demo: Site) -> None:
    answer = demo.post("/studio/data/explain", "read", json={"user": USER})
    why = answer.json()
    assert answer.status_code == 200
    assert why["lead"] >= 0  # deployment shows the article of the highest estimate
    total = why["rest"] + sum(each["adds"] for each in why["reasons"])
    assert total == pytest.approx(why["lead"], abs=1e-9)
    assert len(why["candidates"]) == LISTED < why["articles"] == 20
    for each in why["candidates"]:
        assert all(0 <= chance <= 1 for chance in each["chances"].values())
        assert each["chances"]["uniform"] == pytest.approx(1 / 20)
    for wrong in ({"user": USER[:3]}, {"user": "me"}, {"user": USER, "more": 1}, {}):
        assert demo.post("/studio/data/explain", "read", json=wrong).status_code == 422, wrong
    assert demo.post("/studio/data/explain", "read", content=b"{").status_code == 400


def test_no_click_rate_is_shown_as_negative(demo: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A linear model's estimate may be; what it adds up to is not changed."""
    policy = demo.service.decider("front").pool.policy

    def lower(user: Any, ids: Any) -> Any:
        return estimates(user, ids) - 10.0

    before = demo.post("/studio/data/explain", "read", json={"user": USER}).json()
    estimates = policy.estimates
    monkeypatch.setattr(policy, "estimates", lower)
    why = demo.post("/studio/data/explain", "read", json={"user": USER}).json()
    assert {each["estimate"] for each in why["candidates"]} == {0.0}
    assert why["article"]["id"] == before["article"]["id"]
    assert why["lead"] == pytest.approx(before["lead"], abs=1e-9)


def test_why_names_the_lever_that_made_the_choice(demo: Site) -> None:
    def put(article: str, **levers: Any) -> None:
        answer = demo.ask("PUT", f"/v1/pools/front/levers/{article}", "edit", json=levers)
        assert answer.status_code == 200, answer.text

    def explained() -> Any:
        return demo.post("/studio/data/explain", "read", json={"user": SPORTY}).json()

    def shows_of(article: str) -> float:
        return float(demo.get(f"/v1/pools/front/articles/{article}", "read").json()["shows"])

    def decided() -> Any:
        """Why a visit in deployment was shown what it was."""
        visits = (demo.visit(1, 0)[0] for _ in range(100))
        made = next(each for each in visits if each["bucket"] == "deployment")
        return data(demo, "decision", id=made["decision"])["why"]

    why = explained()
    other, rival = why["candidates"][-1], why["runner_up"]
    assert why["lever"] is None
    put(other["id"], pin={"slot": 1})
    for pinned in (explained(), decided()):
        assert (pinned["lever"], pinned["article"]["id"]) == ("pin", other["id"])
        assert pinned["article"]["chances"]["deployment"] == 1.0
    put(other["id"])
    put(rival["id"], boost=10.0)
    boosted = explained()
    assert (boosted["lever"], boosted["article"]["id"]) == ("boost", rival["id"])
    assert boosted["article"]["boost"] == 10.0
    assert boosted["article"]["chances"]["deployment"] == 1.0
    assert boosted["lead"] < 0  # the estimate itself is not boosted
    put(rival["id"])
    best = explained()["article"]
    put(best["id"], max_shows=max(1, int(shows_of(best["id"]))))
    held = next(each for each in decided()["candidates"] if each["held"])
    assert held["id"] == best["id"]
    assert set(held["chances"].values()) == {0.0}
    put(best["id"])
    decision = ExplainedDecision(
        DEPLOYMENT, explained()["runner_up"]["id"], False, (explained()["article"]["id"],)
    )
    limited = explain(demo.service, "front", SPORTY, (), decision)
    assert limited.lever == "limit"
    assert limited.article.chances["deployment"] == 1.0
    assert explained()["lever"] is None


class Forgotten:
    """A memory of no decision."""

    def get(self, number: int) -> None:
        return None


def test_a_decision_is_found_by_its_id_and_by_its_number(
    demo: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made,) = demo.visit(1, 1)
    by_id = data(demo, "decision", id=made["decision"])
    by_number = data(demo, "decision", id=str(by_id["number"]))
    assert by_id | {"why": None} == by_number | {"why": None}
    assert (by_id["article"], by_id["payoff"]) == (made["article"], 1.0)
    assert by_id["ranking"][0] == by_id["why"]["article"]["id"] == made["article"]
    newest = data(demo, "recent")[0]
    assert (newest["number"], newest["payoff"]) == (by_id["number"], 1.0)
    assert data(demo, "decision", id=newest["id"])["number"] == by_id["number"]
    with monkeypatch.context() as forgetful:  # as of a decision that is long ago
        forgetful.setattr(demo.service, "recent", Forgotten())
        assert data(demo, "decision", id=made["decision"]) | {"why": None} == by_id | {"why": None}
    assert refusal(demo, "decision", id="999999999") == (404, "unknown_decision")
    assert refusal(demo, "decision", id="") == (422, "bad_request")
    assert refusal(demo, "decision", id="x" * 101) == (422, "bad_request")
    assert refusal(demo, "decision", id="forged") == (403, "forged_decision")


def test_the_policy_and_its_choices_are_those_of_the_configuration(demo: Site) -> None:
    policy = data(demo, "policy")
    assert policy["model"] == "hybrid"
    assert policy["parameters"]["alpha"] > 0
    buckets = demo.service.decider("front").pool.tally.shows
    assert policy["trials"] == sum(map(sum, buckets)) - sum(buckets[DEPLOYMENT]) > 0
    asked = data(demo, "what-if")
    assert (asked["now"]["name"], asked["state"]) == ("linucb-hybrid", "idle")
    assert asked["now"]["parameters"]["alpha"] == policy["parameters"]["alpha"]
    assert asked["now"]["name"] in asked["choices"]
    assert "omniscient" not in asked["choices"]


def test_health_counts_what_was_refused(demo: Site) -> None:
    def refused(status: int) -> int:
        rows = data(demo, "health")["refused"]
        return sum(row["requests"] for row in rows if row["status"] == status)

    before = refused(404)
    demo.get("/nothing/here")
    demo.get("/studio/nothing", "read")
    assert refused(404) == before + 2
    found = data(demo, "health")
    assert found["journal"]["kind"] == "SQLite"
    assert found["journal"]["records"] >= VISITS
    assert found["journal"]["bytes"] > 0
    assert found["disk"]["free"] <= found["disk"]["total"]
    (hot,) = [row for row in found["routes"] if row["route"] == "/v1/decide"]
    # None: longer than the longest that is told apart, as on a busy machine.
    p50, p95, p99 = (hot[name] or float("inf") for name in ("p50", "p95", "p99"))
    assert p50 <= p95 <= p99


# -- the front page --


def visited(found: Site, path: str = "/", cookie: str = "") -> tuple[str, str]:
    """The decision that the page made, and the cookie that it set."""
    answer = found.get(path, session=cookie)
    assert answer.status_code == 200
    newest = data(found, "recent")[0]
    assert newest["id"] in answer.text
    return newest["id"], answer.headers.get("set-cookie", "").partition(";")[0]


def test_a_visit_is_a_decision_and_a_click_is_one_payoff(demo: Site) -> None:
    decision, cookie = visited(demo, "/?as=2")
    assert cookie.startswith("topstory_visitor=")
    assert visited(demo, "/", cookie)[1] == ""  # known by now
    assert visited(demo, "/?new", cookie)[1] not in ("", cookie)
    assert visited(demo, "/", "topstory_visitor=<nasty>")[1] != ""
    first = demo.post(f"/today/click?decision={decision}").json()
    again = demo.post(f"/today/click?decision={decision}").json()
    assert (first["payoff"], first["repeated"], again["repeated"]) == (1.0, False, True)
    found = data(demo, "decision", id=decision)
    assert (found["payoff"], found["key"]) == (1.0, "today")
    assert found["user"][1] == max(found["user"][:-1])  # the second of the people is Ben


def test_a_click_from_another_site_or_without_an_id_is_refused(demo: Site) -> None:
    decision, _ = visited(demo)
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    refused = demo.post(f"/today/click?decision={decision}", headers=elsewhere)
    assert (refused.status_code, refused.json()["error"]["reason"]) == (403, "wrong_origin")
    assert data(demo, "decision", id=decision)["payoff"] is None
    assert demo.post("/today/click").status_code == 422
    assert demo.get("/today/why?decision=" + "x" * 101).status_code == 422
    assert demo.get(f"/today/click?decision={decision}").status_code == 405


def test_why_is_of_the_story_that_was_shown(demo: Site) -> None:
    decision, _ = visited(demo, "/?as=3")
    shown = data(demo, "decision", id=decision)["article"]
    why = demo.get(f"/today/why?decision={decision}").json()
    assert why["article"]["id"] == shown != why["runner_up"]["id"]
    assert why["rest"] + sum(r["adds"] for r in why["reasons"]) == pytest.approx(why["lead"])
    view = demo.get(f"/v1/pools/front/articles/{shown}", "read").json()
    assert demo.ask("DELETE", f"/v1/pools/front/articles/{shown}", "edit").status_code == 200
    gone = demo.get(f"/today/why?decision={decision}")
    assert (gone.status_code, gone.json()["error"]["reason"]) == (410, "gone")
    assert data(demo, "decision", id=decision)["why"] is None
    facts = {name: view[name] for name in ("features", "title", "summary", "picture")}
    demo.ask("PUT", f"/v1/pools/front/articles/{shown}", "edit", json=facts)


def test_an_empty_pool_is_said_on_every_page(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("in-process") / "data"
    with site(folder, pages={"today": True}) as empty:
        assert "No story yet" in empty.get("/").text
        assert data(empty, "now")["alarms"][0]["kind"] == "bad"
        assert data(empty, "articles", sort="estimate")["rows"] == []
        assert all(each["likes"] == [] for each in data(empty, "visitors"))
        asked = empty.post("/studio/data/explain", "read", json={"user": [0.2, 0.3, 0.5, 1.0]})
        assert (asked.status_code, asked.json()["error"]["reason"]) == (409, "no_article")
        assert data(empty, "recent") == []
        only = {"features": [0.5, 1.0]}
        empty.ask("PUT", "/v1/pools/front/articles/only", "edit", json=only)
        asked = empty.post("/studio/data/explain", "read", json={"user": [0.2, 0.3, 0.5, 1.0]})
        assert (asked.json()["runner_up"], asked.json()["articles"]) == (None, 1)


# -- live updates --


class Listener:
    """A browser that listens to the stream, and leaves after so many messages."""

    def __init__(self, leave_after: int) -> None:
        self.sent: list[Any] = []
        self._leave_after, self._left = leave_after, asyncio.Event()

    async def receive(self) -> Any:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        if len(self.sent) >= self._leave_after:
            self._left.set()


def listen(found: Site, session: str, leave_after: int = 2) -> list[Any]:
    scope = {
        "type": "http",
        "method": "GET",
        "path": STREAM,
        "raw_path": STREAM.encode(),
        "query_string": b"",
        "headers": [(b"cookie", session.encode())] if session else [],
    }

    async def inside() -> list[Any]:
        listener = Listener(leave_after)
        await asyncio.wait_for(found.app(scope, listener.receive, listener.send), 20)
        return listener.sent

    return found.runner.run(inside())


def test_the_stream_sends_the_state_to_those_who_may_read(demo: Site) -> None:
    start, first, end = listen(demo, demo.sign_in("read"))
    assert start["status"] == 200
    assert (b"content-type", b"text/event-stream") in start["headers"]
    assert first["body"].startswith(b"data: {")
    assert msgspec.json.decode(first["body"][6:])["pool"] == "front"
    assert end["body"] == b""
    assert not end.get("more_body")
    assert listen(demo, "")[0]["status"] == 401
    assert listen(demo, demo.sign_in("decide"))[0]["status"] == 403


def test_there_are_not_more_streams_than_a_process_bears(
    demo: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = demo.sign_in("read")
    for others in ({"other": MAX_STREAMS}, {"read": MAX_STREAMS_OF_KEY}):
        monkeypatch.setattr(demo.gate, "_streams", Counter(others))
        assert listen(demo, session)[0]["status"] == 503
    monkeypatch.setattr(demo.gate, "_streams", Counter({"other": MAX_STREAMS_OF_KEY}))
    assert listen(demo, session)[0]["status"] == 200
    assert demo.gate._streams["read"] == 0
    monkeypatch.setattr(demo.gate, "ending", lambda: True)
    assert listen(demo, session) == []  # the service stops: the browser asks anew


def test_a_token_is_read_from_its_own_cookie_only() -> None:
    assert session_token(b"other=1; topstory_studio=t") == "t"
    assert session_token(b"other=topstory_studio") is None
    # Python's own parser takes seconds for this, and no key is needed to send it.
    assert session_token(b'topstory_studio="' + b"\\" * 15_000 + b'"') is None
    assert session_token(None) is None


def test_a_trial_of_what_cannot_be_tried_is_refused_before_it_begins(demo: Site) -> None:
    session, path = demo.sign_in("all"), "/studio/data/what-if"
    wrong: tuple[dict[str, Any], ...] = (
        {"name": "omniscient"},
        {"name": "ucb", "parameters": {"alpha": -1}},
        {"name": "ucb", "parameters": {"seed": 1}},
    )
    for each in wrong:
        body = {"candidates": [each]}
        refused = demo.post(path, session=session, headers=MARK, json=body)
        assert refused.status_code == 422, each
        assert demo.post(path, "read", json=body).status_code == 403
    assert demo.post(path, "promote", json={"candidates": []}).status_code == 422
    assert demo.post(f"{path}/cancel", "promote").json() == {"state": "idle"}
    missing = demo.get(f"{path}/policy?place=0", "promote")
    assert (missing.status_code, missing.json()["error"]["reason"]) == (409, "no_result")
    assert demo.get(f"{path}/policy", "promote").status_code == 422
