"""Open-loop overload: requests come at twice the rate that the service can do, answered or not.

`python -m benchmarks.overload KEY PORT D SIZE RATE SECONDS CONNECTIONS` is the driver, a process of
its own. A request's time counts from when it was due: waiting for a connection counts. Requests are
arrays of SIZE decisions: a connection has one request at a time, and the 1,000 that the service
takes, with a cheap decision each, are less than a tenth of a second's work, which is not shed.
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
import psutil

from benchmarks.load import request
from benchmarks.measuring import say
from benchmarks.servers import Target, started
from benchmarks.tables import Section, Table
from topstory.serving.security.api_keys import new_key

BUSY = (4, 16, 64)  # connections that are always busy: one of these shows the capacity
MAX_CONNECTIONS = 900  # of the driver; the service closes idle ones above 1,000
MAX_ATTEMPTS = 6  # to find more capacity
OFFERED = 0.95  # at least, of what was to be offered
SHAPES = {  # articles, d, decisions of a request, busy loops on the service's core
    "20 articles, d = 6, arrays of 50": (20, 6, 50, 0),
    "the same, with a quarter of a core": (20, 6, 50, 3),
    "300 articles, d = 100, single": (300, 100, 1, 0),
}
Figures = dict[str, float]


def run(quick: bool) -> Section:
    """Find the capacity first, then ask twice of it."""
    seconds = 2.0 if quick else 10.0
    figures: dict[str, Figures] = {}
    rows = []
    for name, (articles, d, size, busy) in SHAPES.items():
        say(f"overloading a service with {name}")
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            target = served(stack, folder, articles, d)
            _share_core(stack, target, busy)
            capacity = _capacity(target, d, size, seconds / 5)
            found = figures[name] = {
                "capacity": capacity,
                **_drive(target, d, size, 2 * capacity, seconds, MAX_CONNECTIONS),
            }
        if found["shed"] == 0.0:
            raise RuntimeError(f"{name}: nothing was refused, so this was no overload")
        if found["asked"] < OFFERED * 2 * capacity:
            raise RuntimeError(
                f"{name}: {found['asked']:,.0f} a second were offered, not {2 * capacity:,.0f}"
            )
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
        f"Capacity: the most of {', '.join(map(str, BUSY))} connections that are always busy, and "
        "of twice of that at a steady rate, until no more is decided. "
        "`other`: decisions that got another answer or none. A quarter of a core: three busy loops "
        "run on the one that the service is bound to."
    ]
    return Section([table], figures, notes)


def _share_core(stack: ExitStack, target: Target, busy: int) -> None:
    """Give the service a core, and so many programs that are never idle beside it."""
    if busy:
        psutil.Process(target.process.pid).cpu_affinity([0])
    for _ in range(busy):
        each = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        stack.callback(each.wait)
        stack.callback(each.kill)
        psutil.Process(each.pid).cpu_affinity([0])


def _capacity(target: Target, d: int, size: int, seconds: float) -> float:
    """The most decisions a second, however they are asked for.

    Connections that are always busy do not show it: the driver, too, takes time between an answer
    and the next request. So twice of what was seen is offered, until no more is decided.
    """
    found = max(  # the first one also warms up
        _drive(target, d, size, 1e9, seconds, busy)["decided"] for busy in BUSY
    )
    for _ in range(MAX_ATTEMPTS):
        more = _drive(target, d, size, 2 * found, seconds, MAX_CONNECTIONS)["decided"]
        if more < 1.05 * found:
            break
        found = more
    return found


def served(stack: ExitStack, folder: Path, articles: int, d: int, more: str = "") -> Target:
    """A service with so many articles; `more`: sections of its configuration."""
    key, digest = new_key()
    config = folder / "topstory.toml"
    config.write_text(
        f'port = 0\ndata = "{folder / "data"}"\nlog_level = "warning"\ncontext = {d}\n'
        '[policy]\nname = "linucb-disjoint"\n[limits]\nburst = 1000000\n'
        f'[[keys]]\nname = "all"\nsha256 = "{digest}"\n{more}'
    )
    command = [sys.executable, "-m", "topstory.cli", "serve", "--config", str(config)]
    target = started(stack, command, key)
    headers = {"authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{target.port}", headers=headers) as client:
        for number in range(articles):
            path = f"/v1/pools/front/articles/a{number}"
            client.put(path, json={}, timeout=60).raise_for_status()
    return target


def _drive(
    target: Target, d: int, size: int, rate: float, seconds: float, connections: int
) -> Figures:
    numbers = (target.port, d, size, rate, seconds, connections)
    command = [sys.executable, "-m", "benchmarks.overload", target.key, *map(str, numbers)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: Figures = json.loads(done.stdout)
    return figures


def pace(
    port: int, wanted: bytes, size: int, rate: float, seconds: float, connections: int
) -> dict[str, float]:
    """Send requests when they are due; how many decisions had what answer, and how late.

    Args: the port, a request, its decisions, how many decisions and for how many seconds, and over
        how many connections.
    """
    rate /= size
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
    came: dict[int, bytes] = {}
    outcomes: Counter[str] = Counter()
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
            head = sockets[number].recv(262_144)
            answer = came[number] = came.get(number, b"") + head
            if head and not _whole(answer):
                continue
            late.append(perf_counter() - due_at.pop(number))
            outcomes["decided"] += answer.count(b'"decision":')
            shed = answer.count(b'"overloaded"')
            outcomes["shed"] += size if answer[9:12] == b"503" else shed
            del came[number]
            if head:
                free.append(number)
            else:
                poll.unregister(number)
                sockets.pop(number).close()
    # Those that were due and found no connection are as late as the end.
    waiting = 0 if saturating else max(0, int(rate * seconds) - sent)
    late += [seconds - (sent + place) / rate for place in range(waiting)] + [30.0] * len(due_at)
    late.sort()
    due = size * len(late) / seconds
    decided, refused = outcomes["decided"] / seconds, outcomes["shed"] / seconds
    return {
        "asked": size * sent / seconds,
        "decided": decided,
        "shed": refused,
        "other": due - decided - refused,
        "p50": late[len(late) // 2],
        "p99": late[len(late) * 99 // 100],
        "worst": late[-1],
    }


def _whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    return bool(found) and len(body) >= int(
        head.lower().partition(b"content-length: ")[2].split()[0]
    )


def main() -> None:
    """Print one JSON document."""
    key, port, d, size = sys.argv[1], *map(int, sys.argv[2:5])
    rate, seconds, connections = float(sys.argv[5]), float(sys.argv[6]), int(sys.argv[7])
    place = random.Random(0)
    user = [place.random() / d for _ in range(d - 1)] + [1.0]
    body = {"user": user} if size == 1 else [{"user": user}] * size
    wanted = request("/v1/decide", key, json.dumps(body).encode())
    print(json.dumps(pace(port, wanted, size, rate, seconds, connections)))


if __name__ == "__main__":
    main()
