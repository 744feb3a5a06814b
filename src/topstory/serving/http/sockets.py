"""Sockets that listen, and the HTTP server behind each."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from topstory.serving.config.schema import Config
from topstory.serving.http.fast_path.exchange import Express
from topstory.serving.http.fast_path.protocol import Connected, guarded

BACKLOG = 2048  # connections that wait to be taken

Tell = Callable[[str], None]


def http_server(
    app: ASGIApp,
    config: Config,
    express: Express | None,
    connected: Connected = lambda here: here,
    lifespan: bool = True,
) -> uvicorn.Server:
    """uvicorn, as it serves here."""
    limits = config.limits
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=guarded(limits, express, connected),
            loop="uvloop",
            ws="none",
            lifespan="on" if lifespan else "off",
            log_config=None,
            log_level=config.log_level,
            access_log=False,  # it would cost half of a request
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=limits.shutdown_seconds,
            backlog=BACKLOG,
        )
    )


def listen(config: Config, count: int = 1) -> list[socket.socket]:
    """Sockets that listen: with several the kernel spreads connections over them.

    Several could also share the port with another service's, which would get a part of the visits:
    that the port is free is found out with a socket that does not share.
    """
    alone = _bound(config.host, config.port, share=False)
    if count == 1:
        alone.listen(BACKLOG)  # who comes early waits
        return [alone]
    port = alone.getsockname()[1]
    alone.close()
    sharing = [share(config.host, port) for _ in range(count)]
    for each in sharing:
        each.listen(BACKLOG)
    return sharing


def share(host: str, port: int) -> socket.socket:
    """One more socket on a port that is shared; it gets connections once it listens."""
    return _bound(host, port, share=True)


def say_where(tell: Tell, config: Config, listening: socket.socket, made: bool) -> None:
    """Print the address; and which API key is valid, if none was created now."""
    host, port = listening.getsockname()[:2]
    tell(f"topstory listening on http://{host}:{port}, data folder {config.data}")
    if not made and not config.keys:
        tell("Using the API key printed at first start. Run `topstory new-key` to create more.")


def _bound(host: str, port: int, share: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if share:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((host, port))
        if not share:
            bound.listen(0)  # only then it is sure that nobody else listens
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"{error.strerror}", f"{host}:{port}") from None
    return bound
