"""A network between a machine and its database that a test can slow, stall, cut and redirect."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Self

from psycopg.conninfo import conninfo_to_dict

CHUNK = 65_536


class Proxy:
    """Passes on what comes to a port of its own to the server's Unix socket, and back."""

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        self._server = _socket(url)
        self.delay = 0.0  # seconds, of all that passes
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        self.url = (
            f"postgresql://postgres@127.0.0.1:{port}/{parts['dbname']}"
            "?sslmode=disable&gssencmode=disable"
        )
        self._flows = threading.Event()  # cleared: nothing passes, and nobody is told
        self._flows.set()
        self._reachable = True
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self) -> None:
        """Hold everything back, as a network that drops packets does."""
        self._flows.clear()

    def cut(self) -> None:
        """Close all connections, and accept no others."""
        self._reachable = False
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def redirect(self, url: str) -> None:
        """Lead to another server from now on; connections to the one before are its own matter."""
        self._server = _socket(url)

    def mend(self) -> None:
        """Let everything pass again."""
        self._reachable, self.delay = True, 0.0
        self._flows.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if not self._reachable:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._server)
            except OSError:  # it is down
                client.close()
                server.close()
                continue
            self._open |= {client, server}
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                self._flows.wait()
                time.sleep(self.delay)
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
            self._open.discard(each)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.mend()
        self._listening.close()
        self.cut()


def _socket(url: str) -> str:
    parts = conninfo_to_dict(url)
    return f"{parts['host']}/.s.PGSQL.{parts.get('port') or 5432}"
