"""Where work runs: in this process, on all its cores, or on a Ray cluster. Same numbers."""

from topstory.engines.engine import Engine, Kept
from topstory.engines.local import LocalEngine
from topstory.engines.named import engine
from topstory.engines.serial import SerialEngine

__all__ = ["Engine", "Kept", "LocalEngine", "SerialEngine", "engine"]
