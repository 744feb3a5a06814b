"""uvicorn's HTTP protocol with time limits: by itself it waits forever."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from topstory.serving.api.errors import ApiError
from topstory.serving.config.limits import LimitsConfig
from topstory.serving.http.fast_path.write_stall import WriteStall

LINGER_SECONDS = 2.0  # how long a client may go on sending after an error, so that it can read it


class TimedProtocol(HttpToolsProtocol):
    """Limits the time to send a request, to be silent, and to read a response."""

    limits = LimitsConfig()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # One timer for a connection, checked when it fires: a timer for every request is slow.
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._deadline: float | None = None  # None: a request is complete, and being answered
        self._idle = False  # nothing of the next request was received
        self.since = 0.0  # when this connection last began to wait for input
        self._lingering = False  # an error is sent; until the client closes its side
        self._stall = WriteStall()

    def pause_writing(self) -> None:
        """Read no more requests while the client does not read its responses."""
        super().pause_writing()
        if not self.transport.is_closing():
            self.flow.pause_reading()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        """Read requests again: the client reads its responses."""
        super().resume_writing()
        self._stall.reset()
        if self._deadline is not None:  # nothing could be received meanwhile
            idle = self._idle
            self._expect(self.timeout_keep_alive if idle else self.limits.request_seconds, idle)
        if not self.transport.is_closing():
            self.loop.call_soon(self._go_on)

    def _expect(self, seconds: float, idle: bool) -> None:
        """Expect input within so many seconds."""
        self.since = now = self.loop.time()
        self._deadline, self._idle = now + seconds, idle
        if self._timer is None or self._deadline < self._timer_at:
            self._set_timer(seconds)

    def _set_timer(self, seconds: float) -> None:
        self._cancel_timer()
        self._timer_at = self.loop.time() + seconds
        self._timer = self.loop.call_later(seconds, self._check_deadline)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_deadline(self) -> None:
        unread = self._lingering and self.transport.get_write_buffer_size()
        if self.transport.is_closing() or self.flow.write_paused or unread:
            self._wait_for_reader()
            return
        if self._lingering:
            self.transport.abort()
            return
        left = self.limits.request_seconds
        if self._deadline is not None:
            left = self._deadline - self.loop.time()
        if left > 0:
            self._set_timer(left)
        elif self._idle:
            self._hang_up()
        else:
            self._close(
                ApiError(
                    *(408, "too_slow"),
                    f"a request must be complete within {self.limits.request_seconds:g} seconds",
                )
            )

    def _wait_for_reader(self) -> None:
        """Wait until the client has read everything; abort if it reads nothing for too long."""
        now = self.loop.time()
        since = self._stall.since(self.transport.get_write_buffer_size(), now)
        left = since + self.limits.idle_seconds - now
        if left > 0:
            self._set_timer(left)
        else:
            self.transport.abort()

    def _hang_up(self) -> None:
        self.transport.close()  # once everything written is sent
        self._wait_for_reader()

    def _linger(self) -> None:
        """Close our side only: if input were left unread, the client's end would be reset."""
        self._lingering = True
        self.transport.write_eof()
        self.flow.resume_reading()
        self._set_timer(LINGER_SECONDS)

    @abstractmethod
    def _close(self, error: ApiError) -> None:
        """Send an error and close the connection."""

    @abstractmethod
    def _go_on(self) -> None:
        """Read again."""
