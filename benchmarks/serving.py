"""The service over HTTP beside a bare hello-world on the same server, in one interleaved run."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import topstory as ts
from benchmarks.measuring import say
from benchmarks.servers import HELLO, Target, load, service, started
from benchmarks.tables import Section, Table
from topstory.serving.api.messages import ArticleRequest
from topstory.serving.config.schema import TrafficConfig
from topstory.serving.journal.records import ArticleFacts
from topstory.serving.state.decider import Decider
from topstory.serving.state.pool import Pool
from topstory.serving.state.recovery.demo_articles import demo_articles
from topstory.serving.state.traffic import Traffic

EDITED = "decide, while articles are added"
TURN = 50  # who ask in one turn of the event loop


def run(quick: bool) -> Section:
    """Throughput over HTTP, and scoring alone."""
    rounds, seconds = (1, 0.5) if quick else (5, 3.0)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        hello = started(stack, [sys.executable, "-c", HELLO], "")
        durable = service(stack, folder / "durable", "durable")
        relaxed = service(stack, folder / "relaxed", "relaxed")
        crowded = service(stack, folder / "crowded", "durable")
        tasks = {
            "hello-world": (hello, "hello"),
            "decide, durable": (durable, "decide"),
            "decide, relaxed": (relaxed, "decide"),
            "feedback": (durable, "feedback"),
            "decide, 1,000 articles": (crowded, "decide"),
        }
        found: dict[str, list[dict[str, float]]] = {name: [] for name in (*tasks, EDITED)}
        say("adding articles under load")
        edited, edits = _edited(crowded, seconds=1.0 if quick else 20.0)
        found[EDITED].append(edited)
        for number in range(rounds):
            for name, (target, what) in tasks.items():
                say(f"{number + 1} of {rounds}: {name}")
                found[name].append(driven(target, what, seconds))
        say("")
    figures: dict[str, Any] = {name: _middle(each) for name, each in found.items()}
    base = figures["hello-world"]
    rows = [
        (
            name,
            f"{measured['rate']:,.0f}",
            f"{measured['rate'] / base['rate']:.2f}",
            f"{measured['cpu'] * 1e6:,.0f}",
            f"{base['cpu'] / measured['cpu']:.2f}",
            f"{measured['p50'] * 1e3:.1f}",
            f"{measured['p99'] * 1e3:.1f}",
        )
        for name, measured in figures.items()
    ]
    steady = figures["decide, durable"]["p99"]
    busy = max(each["own"] for rounds in found.values() for each in rounds)
    over_http = Table(
        "Over HTTP, 64 connections, hybrid, d = 6, 20 articles",
        ("", "requests/s", "ratio", "CPU µs", "CPU ratio", "p50 ms", "p99 ms"),
        rows,
    )
    scoring, figures["scoring"] = _scoring(quick)
    notes = [
        "One server process each, driven from a second process by plain sockets; medians of "
        f"{rounds} interleaved rounds. CPU is the server's own, the journal's thread included; the "
        "CPU ratio is hello-world's over it, which a busy machine disturbs less. The driver used "
        f"{busy:.0%} of a core at most.",
        f"While they came, one after the other, {edits} articles were added to the pool of twenty; "
        f"the 99th percentile was {figures[EDITED]['p99'] / steady:.1f} times that of the durable "
        f"row, and with 1,000 articles it is "
        f"{figures['decide, 1,000 articles']['p99'] / steady:.1f} times that.",
    ]
    return Section([over_http, scoring], figures, notes)


def _middle(rounds: list[dict[str, float]]) -> dict[str, float]:
    keys = ("rate", "cpu", "p50", "p99", "own")
    return {key: median(each[key] for each in rounds) for key in keys}


def driven(target: Target, what: str, seconds: float) -> dict[str, float]:
    """Drive a server for some seconds: its rate, its CPU for a request, and its latencies."""
    made = ""
    if what == "feedback":
        with load(target, "prepare", seconds) as preparing:
            made, _ = preparing.communicate()
    before = target.cpu
    with load(target, what, seconds) as driving:
        measured, _ = driving.communicate(made)
    return _figures(json.loads(measured), target.cpu - before)


def _edited(target: Target, seconds: float) -> tuple[dict[str, float], int]:
    """Decisions while articles are added, until there are a thousand or the time is over."""
    before, edits = target.cpu, 0
    with (
        load(target, "decide", seconds) as driving,
        ts.Client(f"http://127.0.0.1:{target.port}", target.key) as client,
    ):
        for number, features in zip(range(20, 1_000), article_features(), strict=False):
            if driving.poll() is None:
                edits += 1
            client.put_article("front", f"more-{number}", ArticleRequest(features=features))
        measured, _ = driving.communicate()
    return _figures(json.loads(measured), target.cpu - before), edits


def _figures(measured: dict[str, float], used: float) -> dict[str, float]:
    if measured["bad"]:
        raise RuntimeError(f"{measured['bad']} requests were refused")
    return {
        "rate": measured["requests"] / measured["seconds"],
        "cpu": used / measured["requests"],
        **{key: measured[key] for key in ("p50", "p99", "own")},
    }


def article_features() -> Iterator[tuple[float, ...]]:
    """Of article after article."""
    random = np.random.default_rng(0)
    while True:
        yield (*random.dirichlet(np.ones(5)).tolist(), 1.0)


def _scoring(quick: bool) -> tuple[Table, dict[str, Any]]:
    """A decision without HTTP and journal: score every article, choose, mix the propensities."""
    rows, figures = [], {}
    user = (0.1, 0.6, 0.1, 0.1, 0.1, 1.0)
    for articles in (20, 1_000):
        pool = Pool("front", ts.policy("linucb-hybrid"), 6)
        for facts in demo_articles():
            pool.place(facts, 1)
        for number, features in zip(range(20, articles), article_features(), strict=False):
            pool.place(ArticleFacts(f"more-{number}", features), 1)
        decider = Decider(pool, Traffic(TrafficConfig(), "front"))
        times = 500 if quick else 5_000
        alone, together = [], []
        for _ in range(7):
            began = perf_counter()
            for number in range(times):
                decider.decide(user, number % 3, number, 0)
            alone.append((perf_counter() - began) / times)
            began = perf_counter()
            for number in range(0, times, TURN):
                decider.decide_all([user] * TURN, [0] * TURN, number, 0)
            together.append((perf_counter() - began) / times)
        figures[str(articles)] = median(alone)
        figures[f"{articles} together"] = median(together)
        rows.append(
            (
                f"{articles:,} articles",
                f"{median(alone) * 1e6:.1f}",
                f"{median(together) * 1e6:.1f}",
            )
        )
    columns = ("pool", "alone", f"{TURN} together")
    table = Table("A decision without HTTP and journal, hybrid, d = 6: µs", columns, rows)
    return table, figures
