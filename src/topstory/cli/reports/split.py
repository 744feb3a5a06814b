"""What `topstory split --json` prints."""

import msgspec


class PartReport(msgspec.Struct, frozen=True):
    """One part."""

    log: str
    events: int
    span: str  # of time; empty: the log has no times


class SplitReport(msgspec.Struct, frozen=True):
    """Both parts, the earlier one first."""

    format: str
    version: int
    log: str
    parts: tuple[PartReport, ...]
