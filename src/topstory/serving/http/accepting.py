"""Accepts the connections that wait, many in one turn of the event loop.

The loop by itself accepts one in a turn. A busy turn takes tens of milliseconds, so the last of
hundreds of new connections would wait for seconds before a byte of it is read, unseen by anything
that could refuse its request in time.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn

MAX_ACCEPTED = 128  # connections in one turn: the others are answered in between


class Server(uvicorn.Server):
    """uvicorn, with a second look at each listening socket."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self._connecting: set[asyncio.Task[Any]] = set()
        # Of its own, since the loop watches the other descriptor.
        self._watched = [each.dup() for each in sockets or ()] if self.started else []
        loop = asyncio.get_running_loop()
        for each in self._watched:
            each.setblocking(False)
            loop.add_reader(each, self._accept, each)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and wait for what was asked."""
        loop = asyncio.get_running_loop()
        for each in self._watched:
            loop.remove_reader(each)
            each.close()
        await super().shutdown(sockets)

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(MAX_ACCEPTED):
            try:
                accepted, _ = listening.accept()
            except OSError:  # none waits; of anything worse the loop's own attempt takes care
                return
            accepted.setblocking(False)
            connecting = loop.create_task(loop.connect_accepted_socket(self._protocol, accepted))
            self._connecting.add(connecting)  # else it could be collected
            connecting.add_done_callback(self._connected)

    def _connected(self, connecting: asyncio.Task[Any]) -> None:
        self._connecting.discard(connecting)
        if not connecting.cancelled():
            connecting.exception()  # the client is gone: nobody is left to be told

    def _protocol(self) -> asyncio.Protocol:
        config: Any = self.config
        made: asyncio.Protocol = config.http_protocol_class(
            config=config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made
