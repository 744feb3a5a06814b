"""Where work runs: in this process, on all its cores, or on a Ray cluster. Same numbers."""

from topstory.engines.engine import Engine, ResultRef
from topstory.engines.local import LocalEngine
from topstory.engines.registry import engine
from topstory.engines.serial import SerialEngine

__all__ = ["Engine", "LocalEngine", "ResultRef", "SerialEngine", "engine"]
