"""Proxies between a service and its PostgreSQL: one pools transactions, one swallows packets."""

from __future__ import annotations

import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


@contextmanager
def proxied(url: str, proxy: Proxy) -> Iterator[str]:
    """The URL of a proxy to that server, which listens on a Unix socket."""
    (folder,) = parse_qs(urlsplit(url).query)["host"]
    proxy.server = str(next(Path(folder).glob(".s.PGSQL.*[0-9]")))
    with (
        tempfile.TemporaryDirectory(prefix="pp-") as own,
        socket.socket(socket.AF_UNIX) as listening,
    ):
        listening.bind(f"{own}/.s.PGSQL.5432")
        listening.listen()
        threading.Thread(target=_accept, args=(listening, proxy), daemon=True).start()
        yield url.replace(folder, own)
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        proxy.end()


def _accept(listening: socket.socket, proxy: Proxy) -> None:
    with suppress(OSError):
        while True:
            client, _ = listening.accept()
            threading.Thread(target=_quietly, args=(proxy.serve, client), daemon=True).start()


def _quietly(serve: object, client: socket.socket) -> None:
    with suppress(OSError, ConnectionError), client:
        serve(client)  # type: ignore[operator]  # a method of a proxy


class Proxy:
    """Passes everything on."""

    server = ""

    def __init__(self) -> None:
        self._open: list[socket.socket] = []
        self.swallows = threading.Event()

    def connect(self) -> socket.socket:
        """A connection to the server."""
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.server)
        self._open.append(server)
        return server

    def serve(self, client: socket.socket) -> None:
        """Pass bytes on in both directions, unless they are swallowed."""
        server = self.connect()
        back = threading.Thread(target=self._pass_on, args=(server, client), daemon=True)
        back.start()
        self._pass_on(client, server)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not self.swallows.is_set():
                    target.sendall(data)
            if not self.swallows.is_set():
                target.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Close all connections to the server."""
        for server in self._open:
            with suppress(OSError):
                server.close()


class TransactionPooler(Proxy):
    """As pgbouncer with `pool_mode = transaction`: each transaction gets any free connection."""

    def __init__(self) -> None:
        super().__init__()
        self._free: list[socket.socket] = []
        self._lock = threading.Lock()

    def serve(self, client: socket.socket) -> None:
        """Log in for the client, then pass transactions on."""
        startup = _startup(client)
        server, greeting = self._log_in(startup)
        client.sendall(greeting)
        with self._lock:
            self._free.append(server)
        server_now: socket.socket | None = None
        while True:
            kind, message = _message(client)
            if kind == b"X":
                return
            if server_now is None:
                with self._lock:
                    server_now = self._free.pop() if self._free else None
                if server_now is None:
                    server_now, _ = self._log_in(startup)
            server_now.sendall(message)
            if kind in (b"Q", b"S"):  # the answer ends with the state of the transaction
                while True:
                    kind, answer = _message(server_now)
                    client.sendall(answer)
                    if kind == b"Z":
                        break
                if answer[5:] == b"I":  # none is open
                    with self._lock:
                        self._free.append(server_now)
                    server_now = None

    def _log_in(self, startup: bytes) -> tuple[socket.socket, bytes]:
        server = self.connect()
        server.sendall(startup)
        greeting = b""
        while True:
            kind, message = _message(server)
            greeting += message
            if kind == b"Z":
                return server, greeting


def _startup(client: socket.socket) -> bytes:
    while True:
        length = _exactly(client, 4)
        message = length + _exactly(client, struct.unpack("!i", length)[0] - 4)
        if struct.unpack("!i", message[4:8])[0] not in (80877103, 80877104):
            return message
        client.sendall(b"N")  # neither TLS nor GSSAPI


def _message(connection: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(connection, 5)
    return head[:1], head + _exactly(connection, struct.unpack("!i", head[1:])[0] - 4)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data
