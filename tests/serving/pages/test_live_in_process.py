"""The live demo without its process and its waiting: a clock that is turned by hand."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from tests.serving.pages.in_process import SITE, Site

from topstory.events.simulator import TodayModule
from topstory.serving.config.schema import Config
from topstory.serving.live import demo as live
from topstory.serving.live.visitors import Page, SimulatedVisitors
from topstory.serving.pages.studio.simulation import FIRST_RATE


@pytest.fixture(scope="module")
def world() -> TodayModule:
    return TodayModule(3, users=1000)


def test_visitors_click_as_often_as_the_true_chances_say(world: TodayModule) -> None:
    """By 20000 shows of one article; 4.5 standard errors: wrong once in 150000 seeds."""
    page = Page(world)
    visitors = SimulatedVisitors(world, page, seed=1)
    numbers, asked = visitors.arrive(20_000)
    assert all(sum(each["user"][:-1]) == pytest.approx(1.0, abs=1e-3) for each in asked[:100])
    first = page.pool[0].id
    answers: list[Any] = [
        {"article": first, "bucket": "uniform", "decision": str(n)} for n in range(20_000)
    ]
    paid = visitors.click(numbers, answers)
    truth = visitors.truth()
    shows, expected = truth["shown"]["uniform"]
    assert shows == truth["visits"] == 20_000
    assert expected == pytest.approx(float(page.chances(numbers)[:, 0].sum()))
    assert abs(len(paid) - expected) < 4.5 * np.sqrt(expected)
    assert truth["random"] < truth["best"]
    assert truth["shown"]["deployment"] == (0.0, 0.0)


def test_a_refused_visitor_and_an_article_that_left_count_for_nothing(world: TodayModule) -> None:
    visitors = SimulatedVisitors(world, Page(world), seed=1)
    numbers, _ = visitors.arrive(2)
    assert visitors.click(numbers, [{"error": {}}, {"article": "left", "bucket": "uniform"}]) == []
    assert visitors.truth()["visits"] == 0


def test_every_hour_articles_leave_and_come_and_no_title_comes_twice(world: TodayModule) -> None:
    page = Page(world)
    titles = [facts["title"] for facts in page.articles.values()]
    for _ in range(30):
        before = set(page.articles)
        gone, come = page.turn()
        assert set(page.articles) == (before - set(gone)) | set(come)
        assert set(page.articles) == {article.id for article in page.pool}
        titles += [page.articles[article]["title"] for article in come]
    assert len(set(titles)) == len(titles)


class Service:
    """In place of the process: the site that its file of configuration describes."""

    def __init__(self) -> None:
        self.site: Site | None = None
        self.requests: list[tuple[str, str, int]] = []
        self.ended = False
        self.stdout = SimpleNamespace(readline=lambda: f"topstory listening on {SITE}, pid 1\n")

    def start(self, command: list[str], **options: Any) -> Service:
        assert command[1:3] == ["-m", "topstory.serving.live.served"]
        config = msgspec.json.decode(Path(command[3]).read_bytes(), type=Config)
        limits = msgspec.structs.replace(config.limits, queue_seconds=60.0)  # refuses nobody
        self.site = Site(msgspec.structs.replace(config, limits=limits), {})
        return self

    def answer(self, request: httpx.Request) -> httpx.Response:
        assert self.site is not None
        headers = {"authorization": request.headers["authorization"]}
        path, body = request.url.raw_path.decode(), request.content
        answer = self.site.ask(request.method, path, headers=headers, content=body)
        self.requests.append((request.method, path, answer.status_code))
        return httpx.Response(answer.status_code, content=answer.content)

    def poll(self) -> None:
        return None

    def terminate(self) -> None:
        self.ended = True

    def wait(self, seconds: float) -> None:
        assert self.ended
        assert self.site is not None
        self.site.close()


class Time:
    """Goes on while one sleeps, and only then."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.01)


def test_the_demo_adds_articles_sends_visitors_and_reports_the_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, client, before = Service(), httpx.Client, signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(subprocess, "Popen", service.start)
    monkeypatch.setattr(live, "time", Time())
    monkeypatch.setattr(live, "USERS", 1000)
    monkeypatch.setattr(live, "HOUR_SECONDS", 0.3)
    transport = httpx.MockTransport(service.answer)
    monkeypatch.setattr(httpx, "Client", lambda **given: client(transport=transport, **given))
    lines: list[str] = []
    opened: list[str] = []
    now: dict[str, Any] = {}

    def look(address: str) -> None:
        opened.append(address)
        assert service.site is not None
        service.site.keys["demo"] = address.partition("#")[2]
        page = service.site.get("/demo")
        assert page.status_code == 200
        assert service.site.get("/v1/pools/front/policy", "demo").status_code == 200
        no_policy = service.site.post("/v1/pools/front/policy/comparison", "demo", json={})
        assert no_policy.status_code == 422  # not 403: whoever watches may try and promote
        wrong = service.site.post("/demo/rate?rate=9999", "demo")
        assert (wrong.status_code, service.site.get("/demo/rate").status_code) == (422, 401)
        assert service.site.get("/demo/rate", "demo").json() == {"rate": FIRST_RATE}
        assert service.site.post("/demo/rate?rate=100", "demo").json() == {"rate": 100}

    def closing(seconds: float, wait: Any = service.wait) -> None:
        assert service.site is not None
        now.update(service.site.get("/studio/data/now", "demo").json())
        wait(seconds)

    monkeypatch.setattr(service, "wait", closing)
    try:
        live.live_demo(0, 3, lines.append, look, seconds=4.0)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert service.ended
    assert {status for *_, status in service.requests} == {200}
    put = [path for method, path, _ in service.requests if method == "PUT"]
    left = [path for method, path, _ in service.requests if method == "DELETE"]
    assert len(put) - len(left) == now["articles"] >= 15
    assert left
    assert opened[0].startswith(f"{SITE}/demo#")
    assert any(opened[0] in line for line in lines)
    visits = sum(each["shows"] for each in now["buckets"].values())
    # A second at the first rate, then three at the rate that the page asked for.
    assert 0.8 * (FIRST_RATE + 300) < visits < 1.2 * (FIRST_RATE + 300)
    assert now["simulation"]["rate"] == 100
    (_, (told, best, random, *_)), *_ = now["simulation"]["series"][-1:]
    assert 0 < told <= visits
    assert random < best


def test_a_service_that_does_not_start_is_said() -> None:
    assert live._address("topstory listening on http://127.0.0.1:8000, pid 7\n").endswith(":8000")
    with pytest.raises(OSError, match="did not start"):
        live._address("")
