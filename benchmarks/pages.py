"""The pages: what open studios cost those who decide, and how soon a browser paints.

Studios are open or not in alternating pairs of one run, so that what disturbs the machine for
longer than a pair disturbs both.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from threading import Thread
from time import perf_counter, sleep
from typing import Any

import httpx
from playwright.sync_api import Browser, Page
from tests.report.browser import chromium

from benchmarks.against import driven, middle
from benchmarks.measuring import say
from benchmarks.servers import Target, service
from benchmarks.serving import article_features
from benchmarks.tables import Section, Table

STUDIOS = 10
PATHS = {"the front page": "/", "the studio": "/studio", "its articles": "/studio/articles"}
TURN = """(wanted) => new Promise((done) => {
  const began = performance.now();
  const look = () => document.querySelector("#page").textContent.startsWith(wanted)
    ? done(performance.now() - began) : requestAnimationFrame(look);
  document.querySelector("#forth").click();
  look();
})"""
PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
  for (const each of list.getEntriesByName("first-contentful-paint")) done(each.startTime);
}).observe({ type: "paint", buffered: true }))"""


def run(quick: bool) -> Section:
    """Pairs with and without studios, then first paints."""
    pairs, seconds, loads = (2, 1.0, 2) if quick else (30, 2.0, 20)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        target = service(stack, folder / "paged", "durable", more="[pages]\ntoday = true\n")
        cookie = _signed_in(target)
        ratios, sent = _pairs(target, cookie, pairs, seconds)
        browser = stack.enter_context(chromium())
        paints = {
            name: _paints(browser, target, cookie, path, loads) for name, path in PATHS.items()
        }
        crowd = 200 if quick else 10_000
        say(f"adding {crowd:,} articles")
        _add(target, crowd - 20)  # beside the demo's; a pool takes no more than 10,000
        say("")
        paints[f"{crowd:,} articles"] = _paints(
            browser, target, cookie, PATHS["its articles"], loads
        )
        turns = _turns(browser, target, cookie, loads)
    sure = [_until_sure(seed) for seed in range(1 if quick else 3)]
    rates, cpus = zip(*ratios, strict=True)
    studios = Table(
        f"Decisions with {STUDIOS} studios open, divided by those without",
        ("", "requests/s", "CPU a request"),
        [("median of the pairs, 95 % interval", middle(rates), middle(cpus))],
    )
    painted = Table(
        "First paint from a warm server, by the browser's own clock: ms",
        ("", "median", "longest"),
        [(name, f"{median(found):.0f}", f"{max(found):.0f}") for name, found in paints.items()],
    )
    turned = Table(
        f"A table of {crowd:,} articles: ms",
        ("", "median", "longest"),
        [(name, f"{median(found):.0f}", f"{max(found):.0f}") for name, found in turns.items()],
    )
    notes = [
        f"{pairs} pairs of {seconds:g} s each way, 64 connections that decide as fast as they are "
        f"answered; the {STUDIOS} studios got {sent:,} updates meanwhile. First contentful paint "
        f"of {loads} visits each, the first left out; the browser has visited before, on loopback.",
        "The table has 25 articles on a page. A turn is from the click on *Next* to the next rows; "
        "blocked is the longest task of the browser's own thread meanwhile (0: none above 50 ms).",
        "`topstory demo --live`, from the first visit until the studio says *certainly better*: "
        f"{', '.join(f'{each:.0f}' for each in sure)} s (a world each).",
    ]
    figures: dict[str, Any] = {
        "cpu": list(cpus),
        "rate": list(rates),
        "paint": paints,
        "sure": sure,
    }
    figures |= turns
    return Section([studios, painted, turned], figures, notes)


def _pairs(
    target: Target, cookie: str, pairs: int, seconds: float
) -> tuple[list[tuple[float, float]], int]:
    """With studios over without: requests a second, and CPU for one of them."""
    found, sent = [], 0
    for number in range(-1, pairs):  # the first is to warm up
        say(f"{number + 1} of {pairs}")
        each = {}
        for watched in (number % 2 == 0, number % 2 != 0):  # who goes first alternates
            with _studios(target, cookie, STUDIOS if watched else 0) as updates:
                each[watched] = driven(target, "decide", seconds)
            sent += sum(updates)
        if number >= 0:
            found.append((each[True][0] / each[False][0], each[True][1] / each[False][1]))
    say("")
    return found, sent


@contextmanager
def _studios(target: Target, cookie: str, count: int) -> Iterator[list[int]]:
    """So many streams that somebody reads; how many updates each of them got."""
    updates = [0] * count
    opened = [_opened(target, cookie) for _ in range(count)]
    readers = [
        Thread(target=_read, args=(each, updates, place)) for place, each in enumerate(opened)
    ]
    for reader in readers:
        reader.start()
    try:
        yield updates
    finally:
        for each in opened:
            each.shutdown(socket.SHUT_RDWR)
        for reader in readers:
            reader.join()


def _opened(target: Target, cookie: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", target.port))
    connection.sendall(
        f"GET /studio/stream HTTP/1.1\r\nhost: a\r\ncookie: {cookie}\r\n\r\n".encode()
    )
    answer = connection.recv(65_536)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"a stream was refused: {answer[:100]!r}")
    return connection


def _read(connection: socket.socket, updates: list[int], place: int) -> None:
    with connection:
        while piece := connection.recv(1 << 20):
            updates[place] += piece.count(b"\n\n")


def _signed_in(target: Target) -> str:
    key = {"authorization": f"Bearer {target.key}"}
    answer = httpx.post(f"http://127.0.0.1:{target.port}/studio/session", headers=key, timeout=60)
    return answer.raise_for_status().headers["set-cookie"].partition(";")[0]


def _until_sure(seed: int) -> float:
    """Seconds of the live demo until deployment is certainly better than stories at random."""
    command = [sys.executable, "-m", "topstory.cli", "demo", "--live", "--no-browser"]
    options = ["--port", "0", "--seed", str(seed), "--seconds", "240"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        url, _, key = lines[2].split()[-1].partition("/demo#")
        began, words = perf_counter(), ""
        try:
            with httpx.Client(headers={"authorization": f"Bearer {key}"}, timeout=60) as http:
                while words != "certainly better":
                    sleep(0.5)
                    say(f"live demo {seed}: {perf_counter() - began:.0f} s")
                    words = http.get(f"{url}/studio/data/now").json()["lift"]["words"]
            return perf_counter() - began
        finally:
            process.terminate()


def _add(target: Target, count: int) -> None:
    """Articles, by several editors at once."""
    features = list(islice(article_features(), count))
    headers = {"authorization": f"Bearer {target.key}"}
    url = f"http://127.0.0.1:{target.port}/v1/pools/front/articles/more-"
    with httpx.Client(headers=headers, timeout=60) as client, ThreadPoolExecutor(16) as editors:

        def put(number: int) -> None:
            body = {"features": features[number], "title": f"Story number {number}"}
            client.put(f"{url}{number}", json=body).raise_for_status()

        list(editors.map(put, range(count)))


def _turns(browser: Browser, target: Target, cookie: str, loads: int) -> dict[str, list[float]]:
    """From one page of the table to the next, and how long the browser was blocked by that."""
    with _visitor(browser, target, cookie) as page:
        page.add_init_script(
            "window.blocked = 0; new PerformanceObserver((list) => { for (const each of "
            "list.getEntries()) blocked = Math.max(blocked, each.duration); })"
            ".observe({ type: 'longtask' })"
        )
        page.goto(PATHS["its articles"])
        page.wait_for_selector("#articles tbody tr")
        turns, blocked = [], []
        for number in range(loads):
            page.evaluate("blocked = 0")
            turns.append(float(page.evaluate(TURN, f"{number + 2} /")))
            blocked.append(float(page.evaluate("blocked")))
    return {"a turn of the page": turns, "blocked": blocked}


@contextmanager
def _visitor(browser: Browser, target: Target, cookie: str) -> Iterator[Page]:
    """A page of somebody who is signed in."""
    url = f"http://127.0.0.1:{target.port}"
    name, _, value = cookie.partition("=")
    with browser.new_context(base_url=url) as context:
        context.add_cookies([{"name": name, "value": value, "url": url}])
        yield context.new_page()


def _paints(browser: Browser, target: Target, cookie: str, path: str, loads: int) -> list[float]:
    """Milliseconds from the click on a link to the first words."""
    with _visitor(browser, target, cookie) as page:
        found = []
        for _ in range(loads + 1):
            page.goto(path)
            found.append(float(page.evaluate(PAINT)))
    return found[1:]
