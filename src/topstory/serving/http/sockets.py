"""Listening sockets, and the HTTP server behind each."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from topstory.serving.config.schema import Config
from topstory.serving.http.accepting import Server
from topstory.serving.http.fast_path.connection_room import ConnectionRoom, CountConnections
from topstory.serving.http.fast_path.exchange import FastRoutes
from topstory.serving.http.fast_path.protocol import guarded

BACKLOG = 2048  # connections that may wait to be accepted

PrintLine = Callable[[str], None]


def http_server(
    app: ASGIApp,
    config: Config,
    fast_routes: FastRoutes | None,
    count_connections: CountConnections = lambda here: here,
    lifespan: bool = True,
) -> Server:
    """uvicorn, configured for this service."""
    limits = config.limits
    room = ConnectionRoom(limits.connections, config.workers, count_connections)
    return Server(
        uvicorn.Config(
            app,
            http=guarded(limits, fast_routes, room),
            loop="uvloop",
            ws="none",
            lifespan="on" if lifespan else "off",
            log_config=None,
            log_level=config.log_level,
            access_log=False,  # logging would take half of a request's time
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=limits.shutdown_seconds,
            backlog=BACKLOG,
        )
    )


def listen(config: Config, count: int = 1) -> list[socket.socket]:
    """Listening sockets; the kernel spreads connections over several.

    Sockets that share a port could also share it with another service, which would then get some
    of the requests. So a socket that does not share checks first that the port is free.
    """
    alone = _bound(config.host, config.port, share=False)
    if count == 1:
        alone.listen(BACKLOG)  # early clients wait
        return [alone]
    port = alone.getsockname()[1]
    alone.close()
    sharing = [share(config.host, port) for _ in range(count)]
    for each in sharing:
        each.listen(BACKLOG)
    return sharing


def share(host: str, port: int) -> socket.socket:
    """One more socket on a shared port; it gets connections once it listens."""
    return _bound(host, port, share=True)


def announce(
    print_line: PrintLine, config: Config, listening: socket.socket, new_key: bool
) -> None:
    """Print the address, and which key is in use unless a new one was just printed."""
    host, port = listening.getsockname()[:2]
    print_line(f"topstory listening on http://{host}:{port}, data folder {config.data}")
    if not new_key and not config.keys:
        print_line(
            "Using the API key printed at first start. Run `topstory new-key` to create more."
        )


def _bound(host: str, port: int, share: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if share:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((host, port))
        if not share:
            bound.listen(0)  # only this proves that nobody else listens
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"{error.strerror}", f"{host}:{port}") from None
    return bound
