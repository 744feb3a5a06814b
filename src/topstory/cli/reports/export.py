"""What `topstory export --json` prints."""

import msgspec


class ExportReport(msgspec.Struct, frozen=True):
    """The files that were written for another tool."""

    to: str
    events: int
    files: tuple[str, ...]
