"""The service over HTTP beside a bare hello-world on the same server, in one interleaved run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import psutil

import topstory as ts
from benchmarks.measuring import say
from benchmarks.tables import Section, Table
from topstory.serving.config import TrafficConfig
from topstory.serving.deciding import Decider
from topstory.serving.demo_articles import demo_articles
from topstory.serving.keys import new_key
from topstory.serving.messages import ArticleRequest
from topstory.serving.pool import Pool
from topstory.serving.records import ArticleFacts
from topstory.serving.traffic import Traffic

HELLO = """
import uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-type", b"text/plain"), (b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})
config = uvicorn.Config(app, port=0, loop="uvloop", http="httptools", lifespan="off",
                        log_level="warning", access_log=False)
socket = config.bind_socket()
print(socket.getsockname()[1], flush=True)
uvicorn.Server(config).run([socket])
"""


@dataclass(frozen=True)
class Target:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    port: int
    key: str

    @property
    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        used = psutil.Process(self.process.pid).cpu_times()
        return float(used.user + used.system)


def run(quick: bool) -> Section:
    """Throughput over HTTP, and scoring alone."""
    rounds, seconds = (1, 0.5) if quick else (5, 3.0)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        hello = _started(stack, [sys.executable, "-c", HELLO], "")
        durable = _service(stack, folder / "durable", "durable", 20)
        relaxed = _service(stack, folder / "relaxed", "relaxed", 20)
        crowded = _service(stack, folder / "crowded", "durable", 1_000)
        tasks = {
            "hello-world": (hello, "hello"),
            "decide, durable": (durable, "decide"),
            "decide, relaxed": (relaxed, "decide"),
            "feedback": (durable, "feedback"),
            "decide, 1,000 articles": (crowded, "decide"),
        }
        found: dict[str, list[dict[str, float]]] = {name: [] for name in tasks}
        for number in range(rounds):
            for name, (target, what) in tasks.items():
                say(f"{number + 1} of {rounds}: {name}")
                found[name].append(_driven(target, what, seconds))
        say("")
    figures: dict[str, Any] = {name: _middle(each) for name, each in found.items()}
    base = figures["hello-world"]
    rows = [
        (
            name,
            f"{told['rate']:,.0f}",
            f"{told['rate'] / base['rate']:.2f}",
            f"{told['cpu'] * 1e6:,.0f}",
            f"{base['cpu'] / told['cpu']:.2f}",
            f"{told['p50'] * 1e3:.1f}",
            f"{told['p99'] * 1e3:.1f}",
        )
        for name, told in figures.items()
    ]
    over_http = Table(
        "Over HTTP, 64 connections, hybrid, d = 6, 20 articles",
        ("", "requests/s", "ratio", "CPU µs", "CPU ratio", "p50 ms", "p99 ms"),
        rows,
    )
    scoring, figures["scoring"] = _scoring(quick)
    notes = [
        "One server process each, driven from a second process by plain sockets; medians of "
        f"{rounds} interleaved rounds. CPU is the server's own, the journal's thread included; the "
        "CPU ratio is hello-world's over it, which a busy machine disturbs less.",
    ]
    return Section([over_http, scoring], figures, notes)


def _middle(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {key: median(each[key] for each in rounds) for key in ("rate", "cpu", "p50", "p99")}


def _driven(target: Target, what: str, seconds: float) -> dict[str, float]:
    made = _load(target, "prepare", seconds, "") if what == "feedback" else ""
    before = target.cpu
    told = json.loads(_load(target, what, seconds, made))
    used = target.cpu - before
    if told["bad"]:
        raise RuntimeError(f"{what}: {told['bad']} requests were refused")
    return {
        "rate": told["requests"] / told["seconds"],
        "cpu": used / told["requests"],
        "p50": told["p50"],
        "p99": told["p99"],
    }


def _load(target: Target, what: str, seconds: float, given: str) -> str:
    command = [sys.executable, "-m", "benchmarks.load", str(target.port), target.key, what]
    done = subprocess.run(
        [*command, str(seconds)], input=given, capture_output=True, text=True, check=True
    )
    return done.stdout


def _started(stack: ExitStack, command: list[str], key: str) -> Target:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stack.callback(_end, process)
    assert process.stdout is not None
    line = process.stdout.readline()
    port = int(line.split()[3].rstrip(",").rsplit(":", 1)[1]) if key else int(line)
    return Target(process, port, key)


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    assert process.stdout is not None
    process.stdout.close()


def _service(stack: ExitStack, folder: Path, decisions: str, articles: int) -> Target:
    key, digest = new_key()
    folder.mkdir()
    config = folder / "topstory.toml"
    config.write_text(
        f'port = 0\ndata = "{folder / "data"}"\nlog_level = "warning"\ndemo = true\n'
        f'[journal]\ndecisions = "{decisions}"\n[limits]\nburst = 1000000\n'
        f'[[keys]]\nname = "all"\nsha256 = "{digest}"\n'
    )
    command = [sys.executable, "-m", "topstory.cli", "serve", "--config", str(config)]
    target = _started(stack, command, key)
    random = np.random.default_rng(0)
    with ts.Client(f"http://127.0.0.1:{target.port}", key) as client:
        for number in range(20, articles):
            features = (*random.dirichlet(np.ones(5)).tolist(), 1.0)
            client.put_article("front", f"more-{number}", ArticleRequest(features=features))
    return target


def _scoring(quick: bool) -> tuple[Table, dict[str, Any]]:
    """A decision without HTTP and journal: score every article, choose, mix the propensities."""
    rows, figures = [], {}
    random = np.random.default_rng(0)
    user = [0.1, 0.6, 0.1, 0.1, 0.1, 1.0]
    for articles in (20, 1_000):
        pool = Pool("front", ts.policy("linucb-hybrid"), 6)
        for facts in demo_articles():
            pool.place(facts, 1)
        for number in range(20, articles):
            features = (*random.dirichlet(np.ones(5)).tolist(), 1.0)
            pool.place(ArticleFacts(f"more-{number}", features), 1)
        decider = Decider(pool, Traffic(TrafficConfig(), "front"))
        times = 500 if quick else 5_000
        took = []
        for _ in range(7):
            began = perf_counter()
            for number in range(times):
                decider.decide(user, number % 3, number, 0)
            took.append((perf_counter() - began) / times)
        figures[str(articles)] = median(took)
        rows.append((f"{articles:,} articles", f"{median(took) * 1e6:.1f}"))
    table = Table("A decision alone, hybrid, d = 6: µs", ("pool", "µs"), rows)
    return table, figures
