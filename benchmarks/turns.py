"""The service's own CPU for a request, without sockets: `PYTHON benchmarks/turns.py WHAT [N]`.

WHAT is decide or feedback. N connections (50) send a request each in one turn of the event loop,
again and again; printed are the microseconds of CPU for a request in the quickest turn. Other
programs only make turns slower, so on a busy machine this says more than an average. It runs in any
version of topstory: PYTHON is its interpreter. What the kernel does for sockets is not in it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from hashlib import sha256
from time import thread_time
from typing import Any

import msgspec
import uvicorn

from topstory.serving import server

KEY = "ts_" + "k" * 43
TURNS, WARM_UP = 600, 30
DECIDE = {"user": [0.1, 0.6, 0.1, 0.1, 0.1, 1.0]}


class Answers:
    """In the place of a connection: keeps what is written to it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.write = self.written.append

    def is_closing(self) -> bool:
        """Never."""
        return False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Addresses, as uvicorn asks for them."""
        return ("127.0.0.1", 1) if name in ("sockname", "peername") else default

    def set_write_buffer_limits(self, *_: Any, **__: Any) -> None:
        """There is no buffer."""

    pause_reading = resume_reading = close = abort = set_write_buffer_limits


def _request(path: str, content: object) -> bytes:
    body = json.dumps(content).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {KEY}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def _turn(protocols: list[Any], requests: list[bytes]) -> float:
    """CPU seconds from the first byte received to the last answer written."""
    for each in protocols:
        each.transport.written.clear()
    began = thread_time()
    for each, request in zip(protocols, requests, strict=True):
        each.data_received(request)
    while not all(each.transport.written for each in (protocols[0], protocols[-1])):
        await asyncio.sleep(0)
    took = thread_time() - began
    for each in protocols:
        if not each.transport.written[0].startswith(b"HTTP/1.1 200"):
            raise RuntimeError(each.transport.written[0].decode())
    return took


async def _measure(running: Any, what: str, connections: int) -> float:
    loop, config = asyncio.get_running_loop(), running.config
    protocols = []
    for _ in range(connections):
        made = config.http_protocol_class(
            config=config, server_state=running.server_state, app_state={}, _loop=loop
        )
        made.connection_made(Answers())
        protocols.append(made)
    decide = [_request("/v1/decide", DECIDE)] * connections
    least = float("inf")
    for number in range(TURNS):
        took = await _turn(protocols, decide)
        if what == "feedback":
            answers = (each.transport.written[0].partition(b"\r\n\r\n")[2] for each in protocols)
            ids = [json.loads(each)["decision"] for each in answers]
            paid = [_request("/v1/feedback", {"decision": each, "payoff": 1}) for each in ids]
            took = await _turn(protocols, paid)
        if number >= WARM_UP:
            least = min(least, took)
        await asyncio.sleep(0)
    return 1e6 * least / connections


def main() -> None:
    """Serve in this process, and print one number."""
    what, connections = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 50
    original, found = uvicorn.Server.startup, list[float]()
    running: list[asyncio.Task[None]] = []

    async def measure(self: uvicorn.Server) -> None:
        found.append(await _measure(self, what, connections))
        self.server_state.connections.clear()  # they are none: nobody closes them
        self.should_exit = True

    async def startup(self: uvicorn.Server, sockets: Any = None) -> None:
        await original(self, sockets)
        running.append(asyncio.create_task(measure(self)))

    uvicorn.Server.startup = startup  # type: ignore[method-assign]  # also in versions before this
    keys = [{"name": "turns", "sha256": sha256(KEY.encode()).hexdigest()}]
    limits = {"burst": 10_000_000}
    with tempfile.TemporaryDirectory() as folder:
        settings = {"data": folder, "port": 0, "demo": True, "log_level": "warning"}
        config = msgspec.convert(
            {**settings, "keys": keys, "limits": limits}, vars(server)["Config"]
        )
        server.serve(config, lambda sentence: None)
    print(f"{found[-1]:.2f}")


if __name__ == "__main__":
    main()
