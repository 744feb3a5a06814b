"""Errors of the API: a status, a reason for programs, and a message for people."""

from __future__ import annotations

import msgspec


class ErrorBody(msgspec.Struct, frozen=True):
    """What went wrong."""

    reason: str
    message: str


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The body of every error response."""

    error: ErrorBody


class ApiError(Exception):
    """A request that fails: the service answers with this error, and the client raises it.

    >>> ApiError(404, "unknown_pool", "there is no pool 'sports'").answer
    ErrorAnswer(error=ErrorBody(reason='unknown_pool', message="there is no pool 'sports'"))
    """

    def __init__(self, status: int, reason: str, message: str, allow: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message
        self.allow = allow  # with 405: the methods that the path has

    @property
    def answer(self) -> ErrorAnswer:
        """The response body."""
        return ErrorAnswer(ErrorBody(self.reason, self.message))


class Unavailable(ApiError):
    """The journal cannot be written now. Nothing was changed, and retrying may help."""

    def __init__(self, message: str, reason: str = "journal_unavailable") -> None:
        super().__init__(503, reason, message)
