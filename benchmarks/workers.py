"""One process and two workers beside a hello-world with as many, in one interleaved run."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import psutil

from benchmarks.measuring import say
from benchmarks.servers import HELLO, Target, load, service, started
from benchmarks.tables import Section, Table

# Two processes that listen on the same port, as workers do: the kernel spreads connections.
HELLO_TWICE = """
import os, signal, socket, uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-type", b"text/plain"), (b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})
bound = []
for _ in range(2):
    each = socket.socket()
    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    each.bind(("127.0.0.1", bound[0].getsockname()[1] if bound else 0))
    each.listen(2048)
    bound.append(each)
print(bound[0].getsockname()[1], flush=True)
child = os.fork()
if child:  # uvicorn raises the signal again when it has ended, and the child must still be ended
    signal.signal(signal.SIGTERM, lambda number, frame: None)
config = uvicorn.Config(app, loop="uvloop", http="httptools", lifespan="off",
                        log_level="warning", access_log=False)
try:
    uvicorn.Server(config).run([bound[0 if child else 1]])
finally:
    if child:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
"""


def run(quick: bool) -> Section:
    """Throughput, and how much of the machine it takes."""
    rounds, seconds = (1, 0.5) if quick else (5, 3.0)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        hello = started(stack, [sys.executable, "-c", HELLO], "")
        twice = started(stack, [sys.executable, "-c", HELLO_TWICE], "")
        one = service(stack, folder / "one", "durable")
        two = service(stack, folder / "two", "durable", workers=2)
        loose = service(stack, folder / "loose", "relaxed", workers=2)
        tasks = {
            "hello-world, one process": (hello, "hello"),
            "hello-world, two": (twice, "hello"),
            "decide, one process": (one, "decide"),
            "decide, two workers": (two, "decide"),
            "decide, two workers, relaxed": (loose, "decide"),
            "feedback, one process": (one, "feedback"),
            "feedback, two workers": (two, "feedback"),
        }
        found: dict[str, list[dict[str, float]]] = {name: [] for name in tasks}
        for number in range(rounds):
            for name, (target, what) in tasks.items():
                say(f"{number + 1} of {rounds}: {name}")
                found[name].append(_driven(target, what, seconds))
        say("")
    figures: dict[str, Any] = {
        name: {key: median(each[key] for each in told) for key in told[0]}
        for name, told in found.items()
    }
    once, both = (figures[f"hello-world, {name}"]["rate"] for name in ("one process", "two"))
    rows = [
        (
            name,
            f"{told['rate']:,.0f}",
            f"{told['rate'] / once:.2f}",
            f"{told['rate'] / both:.2f}",
            f"{told['cpu'] * 1e6:,.0f}",
            f"{told['server']:.2f}",
            f"{told['main']:.0%}",
            f"{told['driver']:.2f}",
            f"{told['machine']:.0%}",
            f"{told['p50'] * 1e3:.1f}",
            f"{told['p99'] * 1e3:.1f}",
        )
        for name, told in figures.items()
    ]
    table = Table(
        f"Over HTTP, 64 connections, hybrid, d = 6, 20 articles, {os.cpu_count()} cores",
        (
            *("", "requests/s", "of hello, one", "of hello, two", "CPU µs"),
            *("server cores", "of it main", "driver cores", "machine", "p50 ms", "p99 ms"),
        ),
        rows,
    )
    notes = [
        f"Medians of {rounds} interleaved rounds. CPU and server cores are of all processes of a "
        "server, main is the one that learns, the journal's thread included; machine is the share "
        "of all cores that were busy, whoever used them. Near 100 % the cores are used: "
        "on two of them the driver takes its part.",
    ]
    return Section([table], figures, notes)


def _driven(target: Target, what: str, seconds: float) -> dict[str, float]:
    made = ""
    if what == "feedback":
        with load(target, "prepare", seconds) as preparing:
            made, _ = preparing.communicate()
    before, busy, began = target.each_cpu, _busy(), perf_counter()
    with load(target, what, seconds) as driving:
        answer, _ = driving.communicate(made)
    told = json.loads(answer)
    if told["bad"]:
        raise RuntimeError(f"{told['bad']} requests were refused")
    each = [after - then for after, then in zip(target.each_cpu, before, strict=True)]
    used = sum(each)
    cores = (os.cpu_count() or 1) * (perf_counter() - began)
    return {
        "rate": told["requests"] / told["seconds"],
        "cpu": used / told["requests"],
        "server": used / told["seconds"],
        "main": each[0] / used,
        "driver": told["own"],
        "machine": min(1.0, (_busy() - busy) / cores),
        "p50": told["p50"],
        "p99": told["p99"],
    }


def _busy() -> float:
    """Seconds that all cores were busy, since the machine started."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)
