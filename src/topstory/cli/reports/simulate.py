"""What `topstory simulate --json` prints."""

import msgspec


class SimulationReport(msgspec.Struct, frozen=True):
    """A simulated log."""

    events: int
    articles: int
    ctr: float
    start: str
    days: float
    seed: int
    out: str
    bytes: int
    seconds: float
