"""Why a request is not granted: a status, a reason for machines, a sentence for people."""

from __future__ import annotations

import msgspec


class ErrorBody(msgspec.Struct, frozen=True):
    """What went wrong."""

    reason: str
    message: str


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The answer of every request that is refused."""

    error: ErrorBody


class Refused(Exception):
    """A request that is not granted.

    >>> Refused(404, "unknown_pool", "there is no pool 'sports'").answer
    ErrorAnswer(error=ErrorBody(reason='unknown_pool', message="there is no pool 'sports'"))
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message

    @property
    def answer(self) -> ErrorAnswer:
        """The body."""
        return ErrorAnswer(ErrorBody(self.reason, self.message))


class Unavailable(Refused):
    """The journal cannot be written now: nothing was changed, and trying again may help."""

    def __init__(self, message: str, reason: str = "journal_unavailable") -> None:
        super().__init__(503, reason, message)
