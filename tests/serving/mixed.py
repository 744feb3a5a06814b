"""Mixed traffic over plain sockets: a typed client would be what is measured."""

from __future__ import annotations

import json
import random
import select
import socket
from array import array
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

CONNECTIONS = 32
BATCH = 10  # requests in an array
# How often each kind of request is made, in percent: edits and reads far more than on any site.
SHARES = {
    **{"decide": 55, "rank": 8, "named": 6},
    **{"feedback": 20, "again": 1},
    **{"decide many": 2, "feedback many": 2},
    **{"put": 1, "remove": 1},
    **{"article": 1, "articles": 1, "stats": 1, "metrics": 1},
}


class Mixed:
    """Visitors, clicks, editors and readers: makes requests, and takes in their answers."""

    def __init__(self, key: str, contexts: list[tuple[float, ...]], seed: int = 0) -> None:
        self._head = f"host: a\r\nauthorization: Bearer {key}\r\n"
        self._users = [json.dumps(each) for each in contexts]
        self._random = random.Random(seed)
        self._deck: list[str] = []  # of the next hundred requests
        self._unpaid: deque[str] = deque(maxlen=10_000)  # decisions
        self._paid: deque[tuple[str, int]] = deque(maxlen=1_000)
        self._placed: deque[str] = deque()
        self._number = 0
        self.answers: Counter[str] = Counter()
        self.payoff = 0  # acknowledged, repetitions aside
        self.refused: list[tuple[str, bytes]] = []

    def request(self) -> tuple[str, Any, bytes]:
        """The next one: its kind, what its answer is about, and its bytes."""
        if not self._deck:
            self._deck = [kind for kind, share in SHARES.items() for _ in range(share)]
            self._random.shuffle(self._deck)
        kind = self._deck.pop()
        self._number += 1
        if kind.startswith(("feedback", "again")):
            return self._pay(kind)
        if kind == "remove" and self._placed:
            name = self._placed.popleft()
            return kind, name, self._bytes("DELETE", f"/v1/pools/front/articles/{name}")
        if kind in ("put", "remove"):
            name = f"new-{self._number}"
            body = json.dumps({"features": [self._random.random(), self._random.random(), 1]})
            return "put", name, self._bytes("PUT", f"/v1/pools/front/articles/{name}", body)
        if kind in READS:
            return kind, None, self._bytes("GET", READS[kind])
        return self._decide(kind)

    def _decide(self, kind: str) -> tuple[str, Any, bytes]:
        if kind == "decide many":
            asked = [f'{{"user": {self._random.choice(self._users)}}}' for _ in range(BATCH)]
            return kind, None, self._bytes("POST", "/v1/decide", f"[{', '.join(asked)}]")
        more = {
            "rank": ', "slots": 4, "exclude": ["article-0"]',
            "named": f', "request": "r{self._number}", "visitor": "v{self._number % 5_000}"',
        }.get(kind, "")
        body = f'{{"user": {self._random.choice(self._users)}{more}}}'
        return kind, None, self._bytes("POST", "/v1/decide", body)

    def _pay(self, kind: str) -> tuple[str, Any, bytes]:
        wanted = BATCH if kind == "feedback many" else 1
        if kind == "again" and self._paid:
            paid = [self._random.choice(self._paid)]
        elif len(self._unpaid) >= wanted:
            taken = (self._unpaid.popleft() for _ in range(wanted))
            paid = [(decision, self._random.randint(0, 1)) for decision in taken]
            kind = "feedback" if kind == "again" else kind
        else:
            return self._decide("decide many")
        bodies = [f'{{"decision": "{decision}", "payoff": {payoff}}}' for decision, payoff in paid]
        body = bodies[0] if wanted == 1 else f"[{', '.join(bodies)}]"
        return kind, paid, self._bytes("POST", "/v1/feedback", body)

    def received(self, kind: str, about: Any, status: int, body: bytes) -> None:
        """What came of it."""
        self.answers[kind] += 1
        if status != 200:
            self.refused.append((kind, body))
        elif kind == "decide many":
            self._unpaid += [made["decision"] for made in json.loads(body)]
        elif kind in ("decide", "rank", "named"):
            self._unpaid.append(json.loads(body)["decision"])
        elif kind.startswith("feedback"):
            self.payoff += sum(payoff for _, payoff in about)
            self._paid += about
        elif kind == "put":
            self._placed.append(about)

    def _bytes(self, method: str, path: str, body: str = "") -> bytes:
        length = f"content-length: {len(body)}\r\n" if body else ""
        return f"{method} {path} HTTP/1.1\r\n{self._head}{length}\r\n{body}".encode()


READS = {
    "article": "/v1/pools/front/articles/article-1",
    "articles": "/v1/pools/front/articles",
    "stats": "/v1/stats",
    "metrics": "/metrics",
}


@dataclass
class Driven:
    """How it went."""

    seconds: float = 0.0
    took: array[float] = field(default_factory=lambda: array("f"))

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.took) / self.seconds


class Connection:
    """One request at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._came = b""

    def ask(self, kind: str, about: Any, content: bytes) -> None:
        self.kind, self.about, self.sent = kind, about, perf_counter()
        self.socket.sendall(content)

    def answer(self) -> tuple[int, bytes] | None:
        """Its status and body, once all of it came."""
        piece = self.socket.recv(262_144)
        if not piece:
            raise ConnectionError("the service hung up")
        self._came += piece
        head, end, body = self._came.partition(b"\r\n\r\n")
        if not end:
            return None
        length = head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0]
        if len(body) < int(length) if length else not body.endswith(b"\r\n0\r\n\r\n"):
            return None
        self._came = b""
        return int(head[9:12]), body


def drive(
    address: tuple[str, int],
    mixed: Mixed,
    seconds: float,
    rate: float = float("inf"),
    watch: Callable[[], None] = lambda: None,
    watches: int = 1,
    at_least: int = 0,
) -> Driven:
    """Make requests at this rate, or as fast as they are answered; `watch` so often on the way.

    It goes on for so many seconds, and until so many requests were made, however slow the machine.
    """
    driven, poll = Driven(), select.epoll()
    connections = [Connection(address) for _ in range(CONNECTIONS)]
    by_number = {each.socket.fileno(): each for each in connections}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    free, made, watched = deque(connections), 0, 0
    began = perf_counter()
    try:
        while True:
            elapsed = perf_counter() - began
            if watched < watches and elapsed >= (watched + 1) * seconds / watches:
                watched += 1
                watch()
            if elapsed < seconds or made < at_least:
                while free and made < rate * elapsed:
                    free.popleft().ask(*mixed.request())
                    made += 1
            elif len(free) == CONNECTIONS and watched == watches:
                break
            for number, _ in poll.poll(0.001 if free else 0.1):
                each = by_number[number]
                answer = each.answer()
                if answer is not None:
                    mixed.received(each.kind, each.about, *answer)
                    driven.took.append(perf_counter() - each.sent)
                    free.append(each)
        driven.seconds = elapsed
    finally:
        poll.close()
        for each in connections:
            each.socket.close()
    return driven
