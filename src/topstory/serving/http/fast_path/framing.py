"""Where a request ends in the input, so that the parser gets one request at a time.

The parser has no way to stop at the end of a request: it would go on to the next one, and what
comes of it would have to be queued.
"""

from __future__ import annotations

from topstory.serving.api.errors import ApiError

_END = b"\r\n\r\n"
MAX_CHUNK_OVERHEAD = 8  # bytes around each byte of a chunked body; the smallest chunk has 5


class Framing:
    r"""How far a request has come. A piece ends where a head or a message may end, or before.

    >>> framing, data = Framing(header_bytes=100), b"GET / HTTP/1.1\r\n\r\nGET /"
    >>> framing.piece_end(data, 0)
    18
    """

    def __init__(self, header_bytes: int) -> None:
        self._limit = header_bytes
        self.in_message = False
        self.in_head = True  # or before it
        self._body_left: int | None = None  # None: in the head, or the body is chunked
        self._tail = b""  # of the last piece: an end may be split
        self._head_bytes = self._body_bytes = self._other_bytes = 0
        self._silent_bytes = 0  # since the last part of the body

    def begin(self) -> None:
        """A request begins."""
        self.in_message = self.in_head = True
        self._body_left, self._body_bytes = None, 0
        self._other_bytes = self._silent_bytes = 0

    def begin_body(self, content_length: int | None) -> None:
        """The head is complete."""
        self.in_head = False
        self._body_left, self._tail = content_length, b""

    def body(self, length: int) -> None:
        """A part of the body came."""
        self._body_bytes += length
        self._silent_bytes = 0

    def finish(self) -> None:
        """The request is complete."""
        self.in_message, self.in_head = False, True
        self._body_left, self._tail, self._head_bytes = None, b"", 0

    def piece_end(self, data: bytes, start: int) -> int:
        """How far the parser may read."""
        if self._body_left is not None:
            return min(len(data), start + self._body_left)
        tail = self._tail
        if tail:
            split = (tail + data[start : start + 3]).find(_END)
            if split >= 0:
                return start + split + len(_END) - len(tail)
        end = data.find(_END, start, start + self._limit)
        return min(len(data), start + self._limit) if end < 0 else end + len(_END)

    def count(self, piece: bytes) -> ApiError | None:
        """Count a piece before it is parsed; the error if a head or trailer is too long."""
        if self.in_head:
            self._head_bytes += len(piece)
            self._tail = piece[-3:]
            return self._too_long() if self._head_bytes > self._limit else None
        if self._body_left is not None:
            self._body_left -= len(piece)
            return None
        self._tail = (self._tail + piece[-3:])[-3:]
        self._other_bytes += len(piece)
        self._silent_bytes += len(piece)
        overhead = self._other_bytes - self._body_bytes
        allowed = 2 * self._limit + MAX_CHUNK_OVERHEAD * self._body_bytes
        if self._silent_bytes > 2 * self._limit or overhead > allowed:
            return self._too_long()
        return None

    def _too_long(self) -> ApiError:
        return ApiError(
            *(431, "headers_too_long"),
            f"a request line and headers may have at most {self._limit} bytes, and so may what "
            "is sent around a chunked body",
        )
