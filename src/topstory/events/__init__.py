"""What happened: the event log, its folder of Parquet files, and what can be said of it."""

from topstory.events.columns.contexts import SparseContexts
from topstory.events.event import Event
from topstory.events.log import EventLog
from topstory.events.quality.inspection import Inspection, inspect
from topstory.events.quality.uniformity import Uniformity

__all__ = ["Event", "EventLog", "Inspection", "SparseContexts", "Uniformity", "inspect"]
