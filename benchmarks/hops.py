"""How many of our own functions one decision passes through, from the HTTP parser to the answer."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from hashlib import sha256
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from benchmarks.measuring import say
from benchmarks.tables import Section, Table

REQUESTS = 200
KEY = "ts_" + "k" * 43


def run(quick: bool) -> Section:
    """Count the calls in a process of its own: the profiler would slow the others down."""
    say("counting calls")
    command = [sys.executable, "-m", "benchmarks.hops"]
    counted = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    say("")
    calls: dict[str, float] = json.loads(counted.stdout)
    rooms: dict[str, float] = {}
    for name, count in calls.items():
        room = name.partition(":")[0].rpartition("/")[0].replace("/", ".")
        rooms[room] = rooms.get(room, 0.0) + count
    total, modules = sum(calls.values()), len({name.partition(":")[0] for name in calls})
    rows = [(room, f"{count:.1f}") for room, count in sorted(rooms.items())]
    rows.append(("all", f"{total:.1f}"))
    table = Table("Calls of our own functions for one decision", ("room", "calls"), rows)
    notes = [
        f"{total:.0f} calls of {len(calls)} functions in {modules} modules, from the HTTP parser "
        "to the answer: one process, one connection, durable decisions, one request at a time. "
        "Comprehensions and lambdas count with the function that they are in. A disk that is slow "
        "at the moment adds up to four calls: its commits go to a thread."
    ]
    return Section([table], {"calls": total, "modules": modules, "each": calls}, notes)


class _Calls:
    """Counts the calls of functions in the package while it is on."""

    def __init__(self) -> None:
        import topstory

        self._root = f"{Path(topstory.__file__).parent}{os.sep}"
        self._ours: dict[CodeType, bool] = {}
        self.counts: Counter[CodeType] = Counter()
        self.on = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and self.on:
            code = frame.f_code
            ours = self._ours.get(code)
            if ours is None:
                inside = code.co_filename.startswith(self._root)
                ours = self._ours[code] = inside and not code.co_name.startswith("<")
            if ours:
                self.counts[code] += 1

    def each(self) -> dict[str, float]:
        """By function: how often it is called for one decision, if for most of them."""
        return {
            f"{code.co_filename.removeprefix(self._root)}:{code.co_qualname}": count / REQUESTS
            for code, count in self.counts.most_common()
            if count >= REQUESTS / 2
        }


def _visit(port: int, calls: _Calls) -> None:
    form = b'{"user": [0.1, 0.6, 0.1, 0.1, 0.1, 1.0], "visitor": "ann%04d"}'
    head = b"POST /v1/decide HTTP/1.1\r\nhost: here\r\nauthorization: Bearer %b\r\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for number in range(-REQUESTS, REQUESTS):
            body = form % (number + REQUESTS)  # a new visitor each time: one teaches so often only
            request = (head + b"content-length: %d\r\n\r\n%b") % (KEY.encode(), len(body), body)
            calls.on = number >= 0  # by then everything is warm
            connection.sendall(request)
            answer = connection.recv(65536)
            if not answer.startswith(b"HTTP/1.1 200"):
                break
    calls.on = False
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Serve in this process, visit it from a thread, and print what was counted."""
    import msgspec

    from topstory.serving import server

    config = vars(server)["Config"]  # found this way in older versions, too
    calls = _Calls()

    def print_line(sentence: str) -> None:
        port = re.search(r"http://127\.0\.0\.1:(\d+)", sentence)
        if port is None:
            return
        threading.Thread(target=_visit, args=(int(port[1]), calls)).start()
        threading.setprofile(calls)  # for threads that begin later, too: the journal's
        sys.setprofile(calls)

    with tempfile.TemporaryDirectory() as folder:
        keys = [{"name": "visits", "sha256": sha256(KEY.encode()).hexdigest()}]
        settings = {"data": folder, "port": 0, "demo": True, "log_level": "warning", "keys": keys}
        server.serve(msgspec.convert(settings, config), print_line)
        sys.setprofile(None)
    print(json.dumps(calls.each()))


if __name__ == "__main__":
    main()
