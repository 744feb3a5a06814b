"""Open-loop overload: requests come at twice the rate that the service can do, answered or not.

`python -m benchmarks.overload KEY PORT D RATE SECONDS CONNECTIONS` is the driver, a process of its
own. A request's time counts from when it was due: waiting for a connection counts.
"""

from __future__ import annotations

import json
import random
import select
import socket
import subprocess
import sys
import tempfile
from collections import Counter, deque
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

import httpx

from benchmarks.load import request
from benchmarks.measuring import say
from benchmarks.servers import Target, started
from benchmarks.tables import Section, Table
from topstory.serving.security.api_keys import new_key

MAX_CONNECTIONS = 900  # of the driver; the service closes idle ones above 1,000
SHAPES = {"20 articles, d = 6": (20, 6), "300 articles, d = 100": (300, 100)}
Figures = dict[str, float]


def run(quick: bool) -> Section:
    """Capacity first, then twice of it."""
    seconds = 2.0 if quick else 10.0
    figures: dict[str, Figures] = {}
    rows = []
    for name, (articles, d) in SHAPES.items():
        say(f"overloading a service with {name}")
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            target = _service(stack, folder, articles, d)
            _drive(target, d, 1e6, 1.0, 32)  # compiles nothing, but warms up
            capacity = _drive(target, d, 1e6, seconds / 5, 32)["decided"]
            found = figures[name] = {
                "capacity": capacity,
                **_drive(target, d, 2 * capacity, seconds, MAX_CONNECTIONS),
            }
        rows.append(
            (
                *(name, f"{capacity:,.0f}", f"{found['asked']:,.0f}", f"{found['decided']:,.0f}"),
                *(f"{found['shed']:,.0f}", f"{found['other']:,.0f}"),
                *(f"{1000 * found[each]:,.0f}" for each in ("p50", "p99", "worst")),
            )
        )
    say("")
    heads = ("decisions", "capacity", "asked", "decided", "shed (503)", "other", "p50", "p99")
    table = Table("Twice the capacity, a second; times in ms", (*heads, "slowest"), rows)
    notes = [
        f"Requests are paced whatever the answers, for {seconds:.0f} s over up to "
        f"{MAX_CONNECTIONS} connections; times of all answers count from when a request was due. "
        "Capacity: 32 connections that are always busy. `other`: requests that got another answer "
        "or none."
    ]
    return Section([table], figures, notes)


def _service(stack: ExitStack, folder: Path, articles: int, d: int) -> Target:
    key, digest = new_key()
    config = folder / "topstory.toml"
    config.write_text(
        f'port = 0\ndata = "{folder / "data"}"\nlog_level = "warning"\ncontext = {d}\n'
        '[policy]\nname = "linucb-disjoint"\n[limits]\nburst = 1000000\n'
        f'[[keys]]\nname = "all"\nsha256 = "{digest}"\n'
    )
    command = [sys.executable, "-m", "topstory.cli", "serve", "--config", str(config)]
    target = started(stack, command, key)
    headers = {"authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{target.port}", headers=headers) as client:
        for number in range(articles):
            path = f"/v1/pools/front/articles/a{number}"
            client.put(path, json={}, timeout=60).raise_for_status()
    return target


def _drive(target: Target, d: int, rate: float, seconds: float, connections: int) -> Figures:
    numbers = (target.port, d, rate, seconds, connections)
    command = [sys.executable, "-m", "benchmarks.overload", target.key, *map(str, numbers)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: Figures = json.loads(done.stdout)
    return figures


def pace(
    port: int, wanted: bytes, rate: float, seconds: float, connections: int
) -> dict[str, float]:
    """Send requests when they are due; how many were answered in what way, and how late."""
    poll = select.epoll()
    sockets: dict[int, socket.socket] = {}
    free: deque[int] = deque()
    for _ in range(connections):
        each = socket.create_connection(("127.0.0.1", port))
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets[each.fileno()] = each
        poll.register(each, select.EPOLLIN)
        free.append(each.fileno())
    due_at: dict[int, float] = {}
    late: list[float] = []
    statuses: Counter[bytes] = Counter()
    saturating = rate >= 1e6  # every connection always busy
    began, sent = perf_counter(), 0
    while (now := perf_counter()) - began < seconds or (due_at and now - began < seconds + 30):
        while free and now - began < seconds:
            due = now if saturating else began + sent / rate
            if due > now:
                break
            number = free.popleft()
            due_at[number] = due
            sockets[number].sendall(wanted)
            sent += 1
        for number, _ in poll.poll(0.0005):
            head = sockets[number].recv(65_536)  # an answer is shorter than a segment
            late.append(perf_counter() - due_at.pop(number))
            if head:
                statuses[head[9:12]] += 1
                free.append(number)
            else:
                statuses[b"closed"] += 1
                poll.unregister(number)
                sockets.pop(number).close()
    # Those that were due and found no connection are as late as the end.
    waiting = 0 if saturating else max(0, int(rate * seconds) - sent)
    late += [seconds - (sent + place) / rate for place in range(waiting)] + [30.0] * len(due_at)
    late.sort()
    decided, shed = statuses[b"200"], statuses[b"503"]
    return {
        "asked": len(late) / seconds,
        "decided": decided / seconds,
        "shed": shed / seconds,
        "other": (len(late) - decided - shed) / seconds,
        "p50": late[len(late) // 2],
        "p99": late[len(late) * 99 // 100],
        "worst": late[-1],
    }


def main() -> None:
    """Print one JSON document."""
    key, port, d = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rate, seconds, connections = float(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6])
    place = random.Random(0)
    user = [place.random() / d for _ in range(d - 1)] + [1.0]
    wanted = request("/v1/decide", key, json.dumps({"user": user}).encode())
    print(json.dumps(pace(port, wanted, rate, seconds, connections)))


if __name__ == "__main__":
    main()
