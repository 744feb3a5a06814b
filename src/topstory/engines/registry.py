"""Engines by name."""

from __future__ import annotations

from topstory.engines.engine import Engine
from topstory.engines.local import LocalEngine
from topstory.engines.serial import SerialEngine

NAMES = ("serial", "local", "ray")


def engine(name: str | Engine, workers: int | None = None, address: str | None = None) -> Engine:
    """The engine with that name, or the engine that is passed.

    Args:
        name: "serial" (this thread), "local" (all cores, as threads) or "ray" (a cluster).
        workers: how many at once; by default one a core.
        address: of the Ray cluster, such as "auto"; by default what RAY_ADDRESS says, or this
            machine.

    >>> engine("serial").workers, engine("local", workers=3).workers
    (1, 3)
    """
    if address is not None and name != "ray":
        raise ValueError(f"an address is that of a Ray cluster; it means nothing to {name!r}")
    if isinstance(name, Engine):
        return name
    if name == "serial":
        return SerialEngine()
    if name == "local":
        return LocalEngine(workers)
    if name == "ray":
        from topstory.engines.ray import RayEngine  # imported here: Ray is an extra

        return RayEngine(workers, address)
    raise ValueError(f"engine must be one of {', '.join(NAMES)}, got {name!r}")
