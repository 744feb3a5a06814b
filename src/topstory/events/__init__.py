"""The event log: what happened, its folder of Parquet files, and checks of its quality."""

from topstory.events.columns.contexts import SparseContexts
from topstory.events.event import Event
from topstory.events.log import EventLog
from topstory.events.quality.inspection import Inspection, inspect
from topstory.events.quality.uniformity import Uniformity

__all__ = ["Event", "EventLog", "Inspection", "SparseContexts", "Uniformity", "inspect"]
