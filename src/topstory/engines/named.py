"""Engines by name."""

from __future__ import annotations

from topstory.engines.engine import Engine
from topstory.engines.local import LocalEngine
from topstory.engines.serial import SerialEngine

NAMES = ("serial", "local", "ray")


def engine(name: str | Engine, workers: int | None = None) -> Engine:
    """The engine of that name, or the one that is given.

    Args:
        name: "serial" (this thread), "local" (all cores, as threads) or "ray" (a cluster).
        workers: how many at once; by default one a core.

    >>> engine("serial").workers, engine("local", workers=3).workers
    (1, 3)
    """
    if isinstance(name, Engine):
        return name
    if name == "serial":
        return SerialEngine()
    if name == "local":
        return LocalEngine(workers)
    if name == "ray":
        from topstory.engines.ray import RayEngine  # imported here: Ray is an extra

        return RayEngine(workers)
    raise ValueError(f"engine must be one of {', '.join(NAMES)}, got {name!r}")
