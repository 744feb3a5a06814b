"""Drive a service from a second process: `python -m benchmarks.load PORT KEY WHAT SECONDS [N]`.

WHAT is hello, decide, or feedback on the decisions that prepare printed, given on standard input.
Plain sockets and epoll, requests made beforehand: it costs less than what it measures.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from collections.abc import Callable, Iterator
from time import perf_counter, process_time
from typing import Any

import psutil

CONNECTIONS = 64  # N, by default
FEEDBACK_RATE = 20_000  # a second: more decisions to pay for are not made
USER = [0.1, 0.6, 0.1, 0.1, 0.1, 1.0]
DECIDE = json.dumps({"user": USER}).encode()


def request(path: str, key: str, body: bytes | None) -> bytes:
    """One request as bytes."""
    if body is None:
        return f"GET {path} HTTP/1.1\r\nhost: a\r\n\r\n".encode()
    head = f"POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def drive(
    port: int,
    requests: Iterator[bytes],
    seconds: float,
    connections: int,
    cpu: Callable[[], float] | None = None,
) -> dict[str, float]:
    """Keep every connection busy; how many answers came, and how long they took.

    `cpu`: the server's CPU seconds so far. What it takes to accept connections is left out.
    """
    poll = select.epoll()
    sockets = {}
    for _ in range(connections):
        each = socket.create_connection(("127.0.0.1", port))
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets[each.fileno()] = each
        poll.register(each, select.EPOLLIN)
    sent = dict.fromkeys(sockets, 0.0)
    took: list[float] = []
    bad = 0
    began, own, busy = perf_counter(), process_time(), _busy()
    for number, each in sockets.items():
        sent[number] = perf_counter()
        each.sendall(next(requests))
    used = counted = 0.0
    running = True
    while running and perf_counter() - began < seconds:
        for number, _ in poll.poll(1.0):
            answer = _whole(sockets[number])
            now = perf_counter()
            took.append(now - sent[number])
            if cpu is not None and len(took) == 2 * connections:
                used, counted = cpu(), len(took)
            bad += not answer.startswith(b"HTTP/1.1 200")
            following = next(requests, None)
            if following is None:
                running = False
                break
            sent[number] = now
            sockets[number].sendall(following)
    elapsed, own, busy = perf_counter() - began, process_time() - own, _busy() - busy
    used = 0.0 if cpu is None else (cpu() - used) / max(1, len(took) - counted)
    for each in sockets.values():
        each.close()
    took.sort()
    return {
        "requests": len(took),
        "cpu": used,  # seconds for one, if they were counted
        "seconds": elapsed,
        "own": own / elapsed,  # of a core: at 1 the driver is what is measured
        "machine": min(1.0, busy / elapsed / (os.cpu_count() or 1)),
        "bad": bad,
        "p50": took[len(took) // 2],
        "p99": took[len(took) * 99 // 100],
    }


def _busy() -> float:
    """Seconds that all cores were busy, whoever used them, since the machine started."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def _whole(connection: socket.socket) -> bytes:
    answer = connection.recv(65_536)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
    while len(body) < length:
        body += connection.recv(65_536)
    return head


def decisions(port: int, key: str, count: int) -> list[str]:
    """Decisions to pay for."""
    found: list[str] = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while len(found) < count:
            body = json.dumps([{"user": USER}] * 1000).encode()
            connection.sendall(request("/v1/decide", key, body))
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += connection.recv(1 << 20)
            head, _, got = answer.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
            while len(got) < length:
                got += connection.recv(1 << 20)
            found += [made["decision"] for made in json.loads(got)]
    return found


def requests_for(what: str, port: int, key: str, seconds: float) -> Iterator[bytes]:
    """Requests for so many seconds, hello and decide without end."""
    if what == "hello":
        return _again(request("/", key, None))
    if what == "decide":
        return _again(request("/v1/decide", key, DECIDE))
    return feedback(decisions(port, key, int(FEEDBACK_RATE * seconds)), key)


def feedback(made: list[str], key: str) -> Iterator[bytes]:
    """One request for each decision, made beforehand."""
    bodies = (json.dumps({"decision": each, "payoff": 1}).encode() for each in made)
    return iter([request("/v1/feedback", key, body) for body in bodies])


def main() -> None:
    """Print one JSON document."""
    port, key, what, seconds = int(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4])
    connections = int(sys.argv[5]) if len(sys.argv) > 5 else CONNECTIONS
    found: Any
    if what == "prepare":
        found = decisions(port, key, int(FEEDBACK_RATE * seconds))
    elif what == "feedback":
        found = drive(port, feedback(json.load(sys.stdin), key), seconds, connections)
    else:
        found = drive(port, requests_for(what, port, key, seconds), seconds, connections)
    print(json.dumps(found))


def _again(one: bytes) -> Iterator[bytes]:
    while True:
        yield one


if __name__ == "__main__":
    main()
