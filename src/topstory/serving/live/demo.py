"""Runs the live demo: starts a service in a process of its own, and sends it visitors."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec

from topstory.events.simulator import TodayModule
from topstory.serving.api.endpoints import ROLES
from topstory.serving.config.pages import PagesConfig
from topstory.serving.config.schema import Config, KeyConfig, PolicyConfig, TrafficConfig
from topstory.serving.demo.people import people
from topstory.serving.demo.stories import TOPICS
from topstory.serving.live.visitors import Page, SimulatedVisitors
from topstory.serving.pages.studio.simulation import FIRST_RATE
from topstory.serving.security.api_keys import new_key

USERS = 50_000
HOUR_SECONDS = 60.0  # of a simulated hour: then articles leave and come
TICK_SECONDS = 0.1
POOL = "front"
# Near the best of the simulated days that `topstory demo` was tuned on.
POLICY: dict[str, Any] = {"name": "linucb-hybrid", "alpha": 0.3, "ridge": 10.0}
# So many at random that one is sure after about a minute: see `python -m benchmarks pages`.
TRAFFIC = TrafficConfig(learning=0.3, deployment=0.4, uniform=0.3)

PrintLine = Callable[[str], None]
Opened = Callable[[str], object]  # what to do with the address


def live_demo(
    port: int, seed: int, print_line: PrintLine, opened: Opened, seconds: float | None = None
) -> None:
    """Serve and send visitors until interrupted, or for so many seconds."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the service, too
    world = TodayModule(seed, users=USERS)
    page = Page(world)
    key, digest = new_key()
    with tempfile.TemporaryDirectory(prefix="topstory-live-") as folder:
        file = Path(folder) / "topstory.json"
        file.write_bytes(msgspec.json.encode(_settings(world, port, folder, digest)))
        process = subprocess.Popen(
            [sys.executable, "-m", "topstory.serving.live.served", str(file)],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            url = _address(process.stdout.readline())
            with httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"}) as http:
                for article, facts in page.articles.items():
                    _put(http, article, facts)
                print_line(f"The front page:  {url}/")
                print_line(f"The studio:      {url}/studio   (key: {key})")
                print_line(f"Both, live:      {url}/demo#{key}")
                print_line("Simulated visitors are coming. Press Ctrl+C to end.")
                opened(f"{url}/demo#{key}")
                _run(http, page, SimulatedVisitors(world, page, seed), process, seconds)
        except (KeyboardInterrupt, httpx.TransportError):  # the service ends by Ctrl+C, too
            pass
        finally:
            process.terminate()
            process.wait(30)


def _settings(world: TodayModule, port: int, folder: str, digest: str) -> Config:
    crowd = people(world.taste.matrix.tolist())
    return Config(
        port=port,
        data=str(Path(folder) / "data"),
        context=len(TOPICS) + 1,
        log_level="warning",
        policy=PolicyConfig(**POLICY),
        traffic=TRAFFIC,
        keys=(KeyConfig(name="demo", sha256=digest, roles=ROLES),),
        pages=PagesConfig(
            today=True,
            simulated=True,
            topics=TOPICS,
            segments=tuple(person.likes for person in crowd),
            personas=crowd,
        ),
    )


def _address(line: str) -> str:
    if not line.startswith("topstory listening on "):
        raise OSError("the service did not start: its message is above")
    return line.split()[3].rstrip(",")


def _put(http: httpx.Client, article: str, facts: dict[str, Any]) -> None:
    http.put(f"/v1/pools/{POOL}/articles/{article}", json=facts, timeout=60).raise_for_status()


def _run(
    http: httpx.Client,
    page: Page,
    visitors: SimulatedVisitors,
    process: subprocess.Popen[str],
    seconds: float | None,
) -> None:
    rate, owed = float(FIRST_RATE), 0.0
    began = reported = turned = last = time.monotonic()
    while process.poll() is None and (seconds is None or last - began < seconds):
        now = time.monotonic()
        owed = min(owed + rate * (now - last), max(rate, 1.0))  # a slow machine gets fewer
        last = now
        if owed >= 1:
            _visit(http, visitors, int(owed))
            owed -= int(owed)
        if now - turned > HOUR_SECONDS:
            turned = now
            gone, come = page.turn()
            for article in come:
                _put(http, article, page.articles[article])
            for article in gone:
                http.delete(f"/v1/pools/{POOL}/articles/{article}")
        if now - reported > 1:
            reported = now
            answer = http.post("/demo/truth", json=visitors.truth())
            rate = float(answer.raise_for_status().json()["rate"])
        time.sleep(max(0.0, TICK_SECONDS - (time.monotonic() - now)))


def _visit(http: httpx.Client, visitors: SimulatedVisitors, count: int) -> None:
    numbers, asked = visitors.arrive(min(count, 500))
    answers = http.post("/v1/decide", json=asked, timeout=60).raise_for_status().json()
    paid = visitors.click(numbers, answers)
    if paid:
        http.post("/v1/feedback", json=paid, timeout=60).raise_for_status()
