"""Heads of requests that came before on a connection: they need not be parsed again."""

from __future__ import annotations

from collections.abc import Sequence

from topstory.serving.http.fast_path.exchange import Ride, Ticket

MOST, BYTES = 16, 1024  # heads that are known of a connection; longer ones are not kept
_END = b"\r\n\r\n"


class KnownHeads:
    """What the heads of one connection come to.

    Byte for byte the same head means the same to any parser, so none is asked again; and whoever
    sends it has shown its key here before.
    """

    def __init__(self) -> None:
        self._tickets: dict[bytes, Ticket] = {}

    def __len__(self) -> int:
        return len(self._tickets)

    def find(self, data: bytes) -> tuple[Ticket, bytes] | None:
        """The ticket and the body, if it is one whole request whose head is known."""
        end = data.find(_END) + len(_END)
        ticket = self._tickets.get(data[:end])
        if ticket is None or len(data) - end != ticket.length:
            return None
        return ticket, data[end:]

    def remember(self, data: bytes, headers: Sequence[tuple[bytes, bytes]], ride: Ride) -> None:
        """If this was one whole request by express, know the next one with the same head."""
        end = data.find(_END) + len(_END)
        if not ride.keep_alive or end > BYTES:
            return
        lengths = [value for name, value in headers if name == b"content-length"]
        plain = all(name != b"transfer-encoding" for name, _ in headers)
        ticket = ride.ticket()
        if plain and ticket and data[end:] == ride.body and lengths == [b"%d" % len(ride.body)]:
            if len(self._tickets) >= MOST:
                self._tickets.clear()
            self._tickets[data[:end]] = ticket
