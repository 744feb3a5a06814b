"""The event log: what happened, its folder of Parquet files, and checks of its quality."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topstory.events.columns.contexts import SparseContexts
    from topstory.events.event import Event
    from topstory.events.log import EventLog
    from topstory.events.quality.inspection import Inspection, inspect
    from topstory.events.quality.rejection import Rejection
    from topstory.events.quality.uniformity import Uniformity

__all__ = [
    "Event",
    "EventLog",
    "Inspection",
    "Rejection",
    "SparseContexts",
    "Uniformity",
    "inspect",
]

_MODULES = {
    "Event": "event",
    "EventLog": "log",
    "Inspection": "quality.inspection",
    "Rejection": "quality.rejection",
    "SparseContexts": "columns.contexts",
    "Uniformity": "quality.uniformity",
    "inspect": "quality.inspection",
}


def __getattr__(name: str) -> Any:
    # Imported when first used: `topstory import --help` lists the formats without numpy.
    if name not in _MODULES:
        raise AttributeError(f"module 'topstory.events' has no attribute {name!r}")
    return getattr(import_module(f"topstory.events.{_MODULES[name]}"), name)
