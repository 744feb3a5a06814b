"""One process and two workers beside a hello-world with as many, in one interleaved run."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks.load import CONNECTIONS
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


MANY = 4 * CONNECTIONS
Round = dict[str, float]
Figures = dict[tuple[int, str, str], Round]  # by connections, kind and processes
KINDS = ("hello-world", "decide, durable", "decide, relaxed", "feedback")


def run(quick: bool) -> Section:
    """Throughput, and how much of the machine it takes."""
    rounds, seconds = (1, 0.5) if quick else (5, 2.0)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        one, two = (
            {
                "hello-world": started(stack, [sys.executable, "-c", hello], ""),
                "durable": service(stack, folder / f"durable-{count}", "durable", workers=count),
                "relaxed": service(stack, folder / f"relaxed-{count}", "relaxed", workers=count),
            }
            for count, hello in ((1, HELLO), (2, HELLO_TWICE))
        )
        found: dict[tuple[int, str, str], list[Round]] = {}
        for number, connections, kind in product(range(rounds), (CONNECTIONS, MANY), KINDS):
            for processes, targets in (("one process", one), ("two", two)):
                say(f"{number + 1} of {rounds}: {kind}, {processes}, {connections} connections")
                found.setdefault((connections, kind, processes), []).append(
                    _driven(*_task(kind, targets), seconds, connections)
                )
        say("")
    figures = {
        key: {name: median(each[name] for each in measured) for name in measured[0]}
        for key, measured in found.items()
    }
    for connections, kind in product((CONNECTIONS, MANY), KINDS):
        alone, both = (found[connections, kind, name] for name in ("one process", "two"))
        figures[connections, kind, "two"] |= _scaling(alone, both)
    tables = [_table(figures, connections) for connections in (CONNECTIONS, MANY)]
    notes = [
        f"Medians of {rounds} interleaved rounds, both tables in one run. Two are two workers and "
        "their learner, or a hello-world in two processes; of hello is the share of the "
        "hello-world in as many. Two over one is the median of the rounds' ratios, and at most is "
        "what it would be if no core ever waited, at the CPU of server and driver for a request. "
        "CPU and server cores are of all processes of a server, main is the one that learns, the "
        "journal's thread included; machine is the share of all cores that were busy, whoever used "
        "them: near 100 % the cores are used, and on two of them the driver takes its part.",
    ]
    named = {", ".join(map(str, key)): measured for key, measured in figures.items()}
    return Section(tables, named, notes)


def _scaling(alone: list[Round], both: list[Round]) -> Round:
    """By rounds, for a busy moment falls on both of a round."""
    cores, pairs = os.cpu_count() or 1, list(zip(alone, both, strict=True))
    costs = [each["cpu"] + each["driver"] / each["rate"] for each in both]  # of a request
    return {
        "scaling": median(two["rate"] / one["rate"] for one, two in pairs),
        "most": median(cores / cost / one["rate"] for one, cost in zip(alone, costs, strict=True)),
    }


def _task(kind: str, targets: dict[str, Target]) -> tuple[Target, str]:
    """Which server is asked, and what."""
    if kind == "hello-world":
        return targets[kind], "hello"
    if kind == "feedback":
        return targets["durable"], kind
    what, decisions = kind.split(", ")
    return targets[decisions], what


def _table(figures: Figures, connections: int) -> Table:
    rows = [
        (
            f"{kind}, {processes}",
            f"{measured['rate']:,.0f}",
            f"{measured['rate'] / figures[connections, 'hello-world', processes]['rate']:.2f}",
            f"{measured['scaling']:.2f}" if "scaling" in measured else "",
            f"{measured['most']:.2f}" if "most" in measured else "",
            f"{measured['cpu'] * 1e6:,.0f}",
            f"{measured['server']:.2f}",
            f"{measured['main']:.0%}",
            f"{measured['driver']:.2f}",
            f"{measured['machine']:.0%}",
            f"{measured['p50'] * 1e3:.1f}",
            f"{measured['p99'] * 1e3:.1f}",
        )
        for (with_so_many, kind, processes), measured in figures.items()
        if with_so_many == connections
    ]
    return Table(
        f"Over HTTP, {connections} connections, hybrid, d = 6, 20 articles, {os.cpu_count()} cores",
        (
            *("", "requests/s", "of hello", "two over one", "at most", "CPU µs"),
            *("server cores", "of it main", "driver cores", "machine", "p50 ms", "p99 ms"),
        ),
        rows,
    )


def _driven(target: Target, what: str, seconds: float, connections: int) -> dict[str, float]:
    made = ""
    if what == "feedback":
        with load(target, "prepare", seconds) as preparing:
            made, _ = preparing.communicate()
    before = target.each_cpu
    with load(target, what, seconds, connections) as driving:
        answer, _ = driving.communicate(made)
    measured = json.loads(answer)
    if measured["bad"]:
        raise RuntimeError(f"{measured['bad']} requests were refused")
    each = [after - then for after, then in zip(target.each_cpu, before, strict=True)]
    used = sum(each)
    return {
        "rate": measured["requests"] / measured["seconds"],
        "cpu": used / measured["requests"],
        "server": used / measured["seconds"],
        "main": each[0] / used,
        "driver": measured["own"],
        "machine": measured["machine"],
        "p50": measured["p50"],
        "p99": measured["p99"],
    }
