"""What happened: the event log, its folder of Parquet files, and what can be said of it."""

from topstory.events.contexts import SparseContexts
from topstory.events.event import Event
from topstory.events.inspection import Inspection, inspect
from topstory.events.log import EventLog
from topstory.events.uniformity import Uniformity

__all__ = ["Event", "EventLog", "Inspection", "SparseContexts", "Uniformity", "inspect"]
